"""All reasons that software and rules of others give. A file of its own: it composes checks that are independent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ..core.errors import TrainyardError
from . import cluster_membership, facts, firewalls, forwarding, networks, remains, resolver, used_ports
from .kernel import Kernel
from .ownership import foreign_files, refusal
from .preflight_checks import Reason, reason


def problems(params: Mapping[str, Any], member: cluster_membership.Membership | None) -> list[Reason]:
    """Return the reasons to refuse a host.

    :param params: options of the module `host_preflight`.
    :param member: the cluster that the host belongs to; checks of new nodes apply only without one.
    """
    given = params["cluster"]
    found = used_ports.port_problems({int(port): program for port, program in params["ports"].items()})
    if given:
        found += remains.other_distributions()
        found += cluster_membership.problems(member, cluster_membership.of_site(given))
        resolv_conf = resolver.choose(params["resolv_conf"])
        found += resolver.problems(resolv_conf)
        if member is None:
            found += firewalls.problems(firewalls.needed(params["needed_ports"]))
            found += networks.problems(params["networks"], resolv_conf)
            if pods := params["networks"].get("kubernetes_pod_cidr"):
                found += forwarding.problems(pods, legacy_is_used=params["iptables_legacy"])
            found += [] if cluster_membership.is_known() else remains.remains()
    if address := params["firewall_address"]:
        found += firewalls.beside()
        if (own := facts.node_address()) not in ("", address):
            found.append(reason("firewall_address", found=own, known=address))
    if foreign := foreign_files(params["files"], params["replace"]):
        found.append(refusal(foreign))
    try:
        # Planned only for its refusals: a host must be refused before anything is written.
        Kernel(params["features"], {name: str(v) for name, v in params["sysctls"].items()}, swap_off=False).plan()
    except TrainyardError as error:
        found += [Reason(**each) for each in cast("list[dict[str, str]]", error.facts["reasons"])]
    return found
