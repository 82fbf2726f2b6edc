"""Ports that other hosts of a site need: their sources, and which hosts probe each other before they are nodes."""

from __future__ import annotations

import contextlib
import ipaddress
from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ..core.untrusted import at, items, line, mapping, whole
from ..host.preflight_checks import reason

GROUPS = ("control_plane", "cluster", "builders", "controllers")
"""Sources that are groups of the inventory. The addresses of the controller and of clients are unknown."""
PODS = "pods"
ADDRESSES = ("kubernetes_node_ip", "ansible_host")
OTHERS = 3
"""Hosts of the cluster to which a new host connects, in addition to the control plane and the mirror."""
NAMED = 5
"""Sources that a reason lists by name."""
CLOSED = {"firewall", "node_address"}
"""Codes of checks that already name why others do not reach a host."""

Ports = Sequence[Mapping[str, Any]]
Groups = Mapping[str, Sequence[str]]


def site_addresses(hosts: Sequence[str], hostvars: Any) -> dict[str, str]:
    """Return host -> its address in the network of the site; a host with only a name is left out.

    :param hosts: names in the inventory; `hostvars` are Ansible's variables of all hosts.
    """
    found = {host: _address(hostvars[host], *_names(hostvars[host])) for host in hosts}
    return {host: address for host, address in found.items() if address}


def _names(known: Any) -> Sequence[str]:
    """Return the variables of a host's address; other hosts know the mirror by its own one."""
    return ("mirror_address", "ansible_host") if "mirror" in known.get("group_names", ()) else ADDRESSES


def _address(known: Any, *names: str) -> str:
    """Return the first of these variables that is an address; empty if none is.

    Ansible has several errors for a template of facts that are not read yet, and none of them matters here.
    """
    for name in names:
        with contextlib.suppress(Exception):
            return str(ipaddress.ip_address(str(known.get(name, ""))))
    return ""


def needed_ports(
    ports: Ports,
    host: str,
    groups: Groups,
    addresses: Mapping[str, str],
    pods: str,
    others: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """Return port, protocol and sources (texts) of each port that another host needs, and `node_port` of those.

    :param ports: as the lookup `provided` returns them.
    :param host: name of the host in the inventory.
    :param groups: Ansible's groups; `addresses` is the result of `site_addresses`.
    :param pods: network of the pods.
    :param others: `controller` and `clients` -> their networks, if they are known.
    """
    found = []
    for port in ports:
        if host not in groups.get(port["group"], ()):
            continue
        names = dict.fromkeys(name for source in port["from"] if source in GROUPS for name in groups.get(source, ()))
        sources = [addresses[name] for name in names if name != host and name in addresses]
        sources += [pods] if PODS in port["from"] else []
        sources += [network for name in port["from"] for network in others.get(name, ())]
        if sources:
            number = {"port": port["port"], "protocol": port.get("protocol", "tcp")}
            found.append({**number, "sources": sources, **({"node_port": True} if port.get("node_port") else {})})
    return found


def port_probes(ports: Ports, hostvars: Any, groups: Groups, addresses: Mapping[str, str]) -> dict[str, Any]:
    """Return which hosts listen on which ports, and who connects to whom, so that closed ports between them are found.

    Each new host connects to the control plane, the mirror and three others, and each control plane host to the new
    hosts. A host is no target if a check already names why others do not reach it.

    :param hostvars: Ansible's variables of all hosts, after their checks.
    :return: `listen` (host -> ports), `connect` (host -> targets without `listens`), and `new` (hosts that are no
        nodes); all are empty if no host is new.
    """
    cluster, control_plane = groups.get("cluster", ()), groups.get("control_plane", ())
    mirror = groups.get("mirror", ())
    known = {name: hostvars.raw_get(name) for name in dict.fromkeys([*cluster, *mirror])}
    checked = [name for name in known if known[name].get("host_reasons") is not None]
    new = [name for name in checked if name in cluster and at(known[name], "__base_preflight", "cluster") == {}]
    if not new:
        return {"listen": {}, "connect": {}, "new": []}
    closed = {name for name in checked if _is_closed(known[name])}
    members = [name for name in cluster if name in checked]
    # A name is not resolved here, and the modules of hosts know IPv4 alone.
    reachable = {name for name in checked if "." in addresses.get(name, "")} - closed
    connect: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for name in checked:
        targets = list(control_plane) if name in new else []
        targets += new if name in control_plane else []
        if name in new:
            place = members.index(name)
            targets += [*mirror, *(members[place + 1 :] + members[:place])[:OTHERS]]
        for target in dict.fromkeys(each for each in targets if each in reachable and each != name):
            connect[name] += _between(ports, name, target, groups, addresses)
    listeners = [*new, *(name for name in checked if name in mirror)]
    listen = {name: _of(ports, name, groups) for name in listeners}
    return {
        "listen": {name: found for name, found in listen.items() if found},
        "connect": {name: found for name, found in connect.items() if found},
        "new": new,
    }


def _is_closed(known: Mapping[str, Any]) -> bool:
    """Return whether it is known that others do not reach a host, or unknown whether it is a node.

    The site's own firewall gets the rules for new hosts later.
    """
    codes = {line(at(each, "code")) for each in items(known["host_reasons"])}
    seen = at(known, "__base_preflight")
    return bool(codes & CLOSED) or at(seen, "host", "firewall") is True or at(seen, "cluster") is None


def _of(ports: Ports, host: str, groups: Groups) -> list[dict[str, Any]]:
    """Return the ports of a host that other hosts of the inventory need."""
    return [
        {"port": port["port"], "protocol": port.get("protocol", "tcp")}
        for port in ports
        if host in groups.get(port["group"], ()) and set(port["from"]) & set(GROUPS)
    ]


def _between(
    ports: Ports, source: str, target: str, groups: Groups, addresses: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the ports of a target that the source needs."""
    return [
        {"host": target, "address": addresses[target], "port": port["port"], "protocol": port.get("protocol", "tcp")}
        for port in ports
        if target in groups.get(port["group"], ())
        and any(source in groups.get(group, ()) for group in port["from"] if group in GROUPS)
    ]


def probe_targets(probes: Mapping[str, Any], host: str, hostvars: Any) -> list[dict[str, Any]]:
    """Return the targets of a host with `listens`. A datagram without a listener has no answer, so it is not sent.

    :param probes: the result of `port_probes`; each listening host has `port_listener`, its module's result.
    """
    opened = {
        (name, whole(at(each, "port")), line(at(each, "protocol"), 10))
        for name in probes["listen"]
        for each in items(at(hostvars.raw_get(name), "port_listener", "ports"))
    }
    found = []
    for target in probes["connect"].get(host, []):
        listens = (target["host"], target["port"], target["protocol"]) in opened
        # Another program has the port: that of a node, or nginx of a mirror.
        if listens or target["protocol"] == "tcp":
            found.append({**target, "listens": listens})
    return found


def probe_reasons(probes: Mapping[str, Any], host: str, hostvars: Any) -> list[dict[str, str]]:
    """Return the reasons why a new host cannot be a node: failed connections to it, and from it to a node.

    A provider's firewall is usually closed for packets that arrive, so of two new hosts the target is refused.
    """
    new = probes["new"]
    sources: defaultdict[tuple[str, str, str, str], list[str]] = defaultdict(list)
    for source in probes["connect"] if host in new else []:
        closed: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
        for each in map(mapping, items(at(hostvars.raw_get(source), "port_probe", "unreached"))):
            target, port = line(each.get("host")), whole(each.get("port"), 1, 65535)
            if target == host or (source == host and target not in new):
                place = (target, line(each.get("address")), line(each.get("why")))
                closed[place].append(f"{port}/{line(each.get('protocol'), 10)}")
        for (target, address, why), ports in closed.items():
            sources[target, address, ", ".join(ports), why].append(source)
    return [
        reason(
            "unreached",
            sources=", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} others" if len(names) > NAMED else ""),
            target=target,
            address=address,
            ports=ports,
            why=why,
        ).as_dict()
        for (target, address, ports, why), names in sources.items()
    ]
