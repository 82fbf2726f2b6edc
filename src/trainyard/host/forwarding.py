"""Firewall rules of a host that would drop the packets of pods: chains at the kernel's forward hook.

Each chain at that hook must accept a packet. Calico accepts those of pods in the chain FORWARD of iptables-nft, in
which Docker and ufw would drop them. Nothing accepts them in another table, or in the tables of iptables-legacy.
"""

from __future__ import annotations

import ipaddress

from . import nftables
from .preflight_checks import Reason, reason

LEGACY = ("iptables-legacy-save", "-t", "filter")


def problems(network: str, *, legacy_is_used: bool = False) -> list[Reason]:
    """Return each chain that would drop packets of the pod network.

    :param network: `kubernetes_pod_cidr`.
    :param legacy_is_used: kube-proxy and Calico use iptables-legacy, too, so Calico accepts there.
    """
    pods = ipaddress.IPv4Network(network, strict=False)
    both = (nftables.Packet(source=pods), nftables.Packet(destination=pods))
    found = [
        reason("forward_drop", family=family, table=table, chain=chain, network=network)
        for (family, table, chain), _ in nftables.dropping(nftables.ruleset(), "forward", both)
    ]
    if not legacy_is_used and ":FORWARD DROP" in nftables.output(LEGACY):
        found.append(reason("forward_drop_legacy"))
    return found
