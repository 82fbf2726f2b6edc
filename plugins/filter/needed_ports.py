"""Filters: the addresses of a site's hosts, and the ports of a host that other hosts need."""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Callable, Mapping, Sequence
from typing import Any

GROUPS = ("control_plane", "cluster", "builders", "controllers")
"""Sources that are groups of the inventory. The addresses of the controller and of clients are unknown."""
PODS = "pods"


def site_addresses(hosts: Sequence[str], hostvars: Any) -> dict[str, str]:
    """Return host -> its address in the network of the site; a host with only a name is left out.

    :param hosts: names in the inventory; `hostvars` are Ansible's variables of all hosts.
    """
    found = {host: _address(hostvars[host], "kubernetes_node_ip", "ansible_host") for host in hosts}
    return {host: address for host, address in found.items() if address}


def _address(known: Any, *names: str) -> str:
    """Return the first of these variables that is an address; empty if none is.

    Ansible has several errors for a template of facts that are not read yet, and none of them matters here.
    """
    for name in names:
        with contextlib.suppress(Exception):
            return str(ipaddress.ip_address(str(known.get(name, ""))))
    return ""


def needed_ports(
    ports: Sequence[Mapping[str, Any]],
    host: str,
    groups: Mapping[str, Sequence[str]],
    addresses: Mapping[str, str],
    pods: str,
) -> list[dict[str, Any]]:
    """Return port, protocol and sources (texts) of each port that another host needs.

    :param ports: as the lookup `provided` returns them.
    :param host: name of the host in the inventory.
    :param groups: Ansible's groups; `addresses` is the result of `site_addresses`.
    :param pods: network of the pods.
    """
    found = []
    for port in ports:
        if host not in groups.get(port["group"], ()):
            continue
        names = dict.fromkeys(name for source in port["from"] if source in GROUPS for name in groups.get(source, ()))
        sources = [addresses[name] for name in names if name != host and name in addresses]
        sources += [pods] if PODS in port["from"] else []
        if sources:
            found.append({"port": port["port"], "protocol": port.get("protocol", "tcp"), "sources": sources})
    return found


class FilterModule:
    """The filters for Ansible."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"needed_ports": needed_ports, "site_addresses": site_addresses}
