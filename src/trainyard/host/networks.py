"""Compare the networks of a new cluster with the addresses, routes and resolvers of a host.

A file of its own, because routes come from the kernel's table, which nothing else here reads.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from pathlib import Path

from .facts import text_of
from .preflight_checks import Reason, reason
from .resolver import servers

ROUTES = "proc/net/route"
"""IPv4 routes of the main table; addresses in it are little-endian hexadecimal numbers."""
REJECTED = 0x0200
"""Flag RTF_REJECT of linux/route.h: a route that drops packets, such as Calico's for its own block."""

Network = ipaddress.IPv4Network


def problems(networks: Mapping[str, str], resolv_conf: str, root: Path = Path("/")) -> list[Reason]:
    """Return each of the cluster's networks that contains something that the host needs.

    Call it only for a host that is no node: a node has routes to its own pods.

    A route into one of the networks would lose to the pods' own routes, and a Service's address is rewritten before any
    route is chosen. A wider route, such as one for 10.0.0.0/8, does no harm: it continues to serve all other addresses.

    :param networks: name of the variable -> network, for example `kubernetes_pod_cidr` -> 10.244.0.0/16.
    :param resolv_conf: resolver file of the host's pods.
    """
    found = []
    for variable, text in networks.items():
        network = ipaddress.IPv4Network(text, strict=False)
        inside = [what for what, each in _needed(resolv_conf, root) if each.subnet_of(network)]
        inside += [what for what, each in _links(root) if each.overlaps(network) and what not in inside]
        if inside:
            found.append(reason("network_overlap", variable=variable, network=network, inside=", ".join(inside)))
    return found


def _needed(resolv_conf: str, root: Path) -> Iterator[tuple[str, Network]]:
    """Yield resolvers and routes through a gateway, each with its description."""
    for server in servers(resolv_conf, root):
        address = ipaddress.ip_address(server)
        if isinstance(address, ipaddress.IPv4Address):
            yield f"the resolver {address} of {resolv_conf}", Network(address)
    for interface, network, is_link in _routes(root):
        if not is_link:
            yield f"the route to {network} on {interface}", network


def _links(root: Path) -> Iterator[tuple[str, Network]]:
    for interface, network, is_link in _routes(root):
        if is_link:
            yield f"the network {network} of {interface}", network


def _routes(root: Path) -> Iterator[tuple[str, Network, bool]]:
    """Yield interface, destination, and whether it is connected directly; no default route and no rejecting one."""
    for row in text_of(root / ROUTES).splitlines()[1:]:
        interface, destination, gateway, flags, _, _, _, mask, *_ = row.split()
        if int(mask, 16) and not int(flags, 16) & REJECTED:
            yield interface, Network(f"{_address(destination)}/{_address(mask)}"), not int(gateway, 16)


def _address(number: str) -> str:
    return str(ipaddress.IPv4Address(bytes.fromhex(number)[::-1]))
