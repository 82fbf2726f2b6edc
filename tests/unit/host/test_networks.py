"""The networks of a new cluster against the routes and resolvers of a host, from trees of files."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest

from trainyard.host.networks import problems

SITE = {"kubernetes_pod_cidr": "10.244.0.0/16", "kubernetes_service_cidr": "10.96.0.0/16"}
HEADER = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"


def route(network: str, interface: str = "ens3", gateway: str | int = 0, flags: int = 1) -> str:
    """Return a row of /proc/net/route as the kernel prints it (fib_trie.c, fib_route_seq_show)."""
    found = ipaddress.IPv4Network(network)

    def number(address: str | int | ipaddress.IPv4Address) -> str:
        return ipaddress.IPv4Address(address).packed[::-1].hex().upper()

    columns = [
        interface,
        number(found.network_address),
        number(gateway),
        f"{flags:04X}",
        "0",
        "0",
        "0",
        number(found.netmask),
    ]
    return "\t".join([*columns, "0", "0", "0"]) + " " * 20 + "\n"


def host(root: Path, *routes: str, resolvers: str = "") -> Path:
    (root / "proc/net").mkdir(parents=True)
    (root / "proc/net/route").write_text(HEADER + "".join(routes))
    (root / "etc").mkdir()
    (root / "etc/resolv.conf").write_text(resolvers)
    return root


USUAL = (route("0.0.0.0/0", gateway="192.168.1.1", flags=3), route("192.168.1.0/24"), route("172.17.0.0/16", "docker0"))


@pytest.mark.parametrize(
    ("added", "resolvers"),
    [
        ((), "nameserver 192.168.1.1\nsearch corp\n"),
        # A wider route keeps serving the other addresses of the company.
        ((route("10.0.0.0/8", gateway="192.168.1.2", flags=3),), "nameserver 10.1.0.1\n"),
        # Calico's own route for a block of this node, after a removal.
        ((route("10.244.3.0/26", "*", flags=0x201),), ""),
        ((), "nameserver 2001:db8::1\nnameserver fe80::1%ens3\nnameserver words\nnameserver\n"),
    ],
)
def test_networks_that_do_not_meet(added: tuple[str, ...], resolvers: str, tmp_path: Path) -> None:
    assert problems(SITE, "/etc/resolv.conf", host(tmp_path, *USUAL, *added, resolvers=resolvers)) == []


@pytest.mark.parametrize(
    ("added", "resolvers", "cause"),
    [
        (
            (),
            "nameserver 10.96.5.1\n",
            "kubernetes_service_cidr is 10.96.0.0/16, which contains the resolver 10.96.5.1 of /etc/resolv.conf",
        ),
        (
            (route("10.244.8.0/24", "ens4", "192.168.1.9", 3),),
            "",
            "kubernetes_pod_cidr is 10.244.0.0/16, which contains the route to 10.244.8.0/24 on ens4",
        ),
        ((route("10.244.0.0/16", "ens4"),), "", "contains the network 10.244.0.0/16 of ens4"),
        # The neighbours in the pods' part of a wide network would be out of reach.
        ((route("10.0.0.0/8", "ens4"),), "", "contains the network 10.0.0.0/8 of ens4"),
    ],
)
def test_each_overlap_is_named(added: tuple[str, ...], resolvers: str, cause: str, tmp_path: Path) -> None:
    found = problems(SITE, "/etc/resolv.conf", host(tmp_path, *USUAL, *added, resolvers=resolvers))
    assert any(cause in each.cause for each in found)
    assert all(each.code == "network_overlap" and "Set kubernetes_" in each.remedy for each in found)


def test_a_host_without_the_files(tmp_path: Path) -> None:
    assert problems(SITE, "/etc/resolv.conf", tmp_path) == []
