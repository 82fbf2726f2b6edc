"""Filter: the ports of a host that other hosts need, with the addresses from which they connect."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

GROUPS = ("control_plane", "cluster", "builders", "controllers")
"""Sources that are groups of the inventory. The addresses of the controller and of clients are unknown."""
PODS = "pods"


def needed_ports(
    ports: Sequence[Mapping[str, Any]], host: str, groups: Mapping[str, Sequence[str]], hostvars: Any, pods: str
) -> list[dict[str, Any]]:
    """Return port, protocol and sources (texts) of each port that another host needs.

    :param ports: as the lookup `provided` returns them.
    :param host: name of the host in the inventory.
    :param groups: Ansible's groups; `hostvars` are the variables of all hosts.
    :param pods: network of the pods.
    """
    found = []
    for port in ports:
        if host not in groups.get(port["group"], ()):
            continue
        names = dict.fromkeys(name for source in port["from"] if source in GROUPS for name in groups.get(source, ()))
        sources = [address for name in names if name != host for address in _addresses(hostvars[name])]
        sources += [pods] if PODS in port["from"] else []
        if sources:
            found.append({"port": port["port"], "protocol": port.get("protocol", "tcp"), "sources": sources})
    return found


def _addresses(known: Mapping[str, Any]) -> Iterator[str]:
    """Yield the address at which a host is in the network of the site; nothing for a name."""
    for name in ("kubernetes_node_ip", "ansible_host"):
        try:
            yield str(ipaddress.ip_address(str(known.get(name, ""))))
        except ValueError:
            continue
        return


class FilterModule:
    """The filters for Ansible."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"needed_ports": needed_ports}
