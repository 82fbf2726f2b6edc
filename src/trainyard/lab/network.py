"""The lab's network: its own bridge, a firewall table, and the network devices of machines.

The firewall table blocks outbound traffic of the nodes. The devices are taps on the bridge of the lab's containers,
with the same outbound block.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
from collections.abc import Iterator, Mapping
from typing import Any

from ..core.command import run
from ..core.errors import CommandError, TrainyardError
from ..core.plan import Step
from .host import podman
from .lab_model import LABEL, Lab, Node, fingerprint


def plan(lab: Lab) -> tuple[list[Step], str]:
    """Plan to create the network.

    :returns: steps, and the observed state ("absent", "present").
    :raises TrainyardError: the name or the subnet is used by another network.
    """
    network = _inspect(lab)
    if network is None:
        _refuse_overlap(lab)
        return [Step(f"Create the network {lab.network} with {lab.subnet}", lambda: _create(lab))], "absent"
    found = {subnet["subnet"] for subnet in network["subnets"]}
    if found != {str(lab.subnet)}:
        raise TrainyardError(
            f"The lab {lab.name} has the network {', '.join(found)}, but the inventory has {lab.subnet}.",
            remedy="Take the lab down before you change its subnet (make lab-down).",
        )
    return [], "present"


def plan_firewall(lab: Lab) -> list[Step]:
    """Plan to write the firewall table. It contains a hash of its rules, which shows changed or missing rules."""
    mark = _mark(lab, bridge_of(lab) or "?")
    found = run(["nft", "list", "table", "inet", lab.table], timeout=20, ok=(0, 1)).stdout
    if mark in found:
        return []
    return [Step(f"Block outbound traffic of the lab (nftables table inet {lab.table})", lambda: _close(lab))]


def plan_removal(lab: Lab) -> list[Step]:
    steps = []
    if run(["nft", "list", "table", "inet", lab.table], timeout=20, ok=(0, 1)).returncode == 0:
        delete = ["nft", "delete", "table", "inet", lab.table]
        steps.append(Step(f"Remove the nftables table inet {lab.table}", lambda: run(delete, timeout=20)))
    if _inspect(lab) is not None:
        steps.append(Step(f"Remove the network {lab.network}", lambda: podman("network", "rm", lab.network)))
    return steps


def assert_route(lab: Lab) -> None:
    """Check that packets to all nodes leave through the lab's bridge.

    :raises TrainyardError: the route to a node uses another interface.
    """
    own = bridge_of(lab)
    for node in lab.nodes:
        route = json.loads(run(["ip", "-json", "route", "get", node.address], timeout=10).stdout)[0]
        if route.get("dev") != own or "gateway" in route:
            raise TrainyardError(
                f"The route to {node.name} ({node.address}) is {route.get('dev')}, not the lab's bridge {own}.",
                remedy=f"Set lab_subnet ({lab.subnet}) to a network that this machine does not use.",
            )


def bridge_of(lab: Lab) -> str:
    """Return the interface of the lab's network on this machine; empty if there is no network yet."""
    network = _inspect(lab)
    return str(network["network_interface"]) if network else ""


def _inspect(lab: Lab) -> dict | None:
    result = podman("network", "inspect", lab.network, ok=(0, 1, 125))
    if result.returncode != 0:
        return None
    network = json.loads(result.stdout)[0]
    if network.get("labels", {}).get(LABEL) != lab.name:
        raise TrainyardError(
            f"There is a container network {lab.network} that no lab made.", remedy="Set another lab_name."
        )
    return network


def _create(lab: Lab) -> None:
    # Not an internal network: podman 4.3 gives its bridge no address, so that connections would use the default route.
    podman(
        "network", "create", f"--label={LABEL}={lab.name}", "--disable-dns",
        f"--subnet={lab.subnet}", f"--gateway={lab.gateway}", lab.network,
    )  # fmt: skip


def _refuse_overlap(lab: Lab) -> None:
    for interface, network in _host_networks():
        if network.overlaps(lab.subnet):
            raise TrainyardError(
                f"The lab's subnet {lab.subnet} overlaps {network} on this machine's interface {interface}.",
                remedy="Set lab_subnet to a network that this machine does not use.",
            )


def _host_networks() -> Iterator[tuple[str, ipaddress.IPv4Network]]:
    routes = json.loads(run(["ip", "-json", "-4", "route", "show"], timeout=10).stdout)
    for route in routes:
        if route["dst"] != "default":
            yield route.get("dev", "?"), ipaddress.IPv4Network(route["dst"], strict=False)


def _rules(lab: Lab, interface: str) -> str:
    """Return the rules: nodes may connect to each other and answer this machine; no other traffic leaves the bridge."""
    return f"""\
table inet {lab.table} {{
  chain forward {{
    type filter hook forward priority -10; policy accept;
    iifname "{interface}" oifname != "{interface}" reject
  }}
  chain input {{
    type filter hook input priority -10; policy accept;
    iifname "{interface}" ct state established,related accept
    iifname "{interface}" reject
  }}
}}
"""


def _mark(lab: Lab, interface: str) -> str:
    return f"trainyard-{fingerprint(_rules(lab, interface))}"


def _close(lab: Lab) -> None:
    own = bridge_of(lab)
    if not own:
        raise TrainyardError(f"The lab's network {lab.network} has disappeared.", remedy="Run again.")
    rules = _rules(lab, own).replace(" reject\n  }\n}", f' reject comment "{_mark(lab, own)}"\n  }}\n}}')
    # One transaction, so that the rules are never missing.
    program = f"table inet {lab.table}\ndelete table inet {lab.table}\n{rules}"
    run(["nft", "-f", "-"], stdin=program.encode(), timeout=20)


TIMEOUT = 20

Links = Mapping[str, Mapping[str, Any]]
"""Output of `ip link`, by interface name."""


def name(lab: Lab, machine: str) -> str:
    """Return the interface name, a hash of lab and machine because names have at most 15 characters; see the alias."""
    return f"lab-{hashlib.sha256(_alias(lab, machine).encode()).hexdigest()[:10]}"


def links() -> Links:
    return {link["ifname"]: link for link in json.loads(run(["ip", "-json", "link", "show"], timeout=TIMEOUT).stdout)}


def owners(found: Links, lab: Lab) -> list[str]:
    """Return the names of the machines that have a device."""
    prefix = _alias(lab, "")
    aliases = [link.get("ifalias", "") for link in found.values()]
    return [alias.removeprefix(prefix) for alias in aliases if alias.startswith(prefix)]


def is_on(found: Links, lab: Lab, node: Node, bridge: str) -> bool:
    link = found.get(name(lab, node.name), {})
    return link.get("master") == bridge and "UP" in link.get("flags", ())


def attach(lab: Lab, node: Node) -> None:
    """Create the machine's device if it is missing, and attach it to the lab's bridge.

    :raises TrainyardError: this machine refuses, or the device does not belong to the lab.
    """
    bridge, device = bridge_of(lab), name(lab, node.name)
    found = links()
    if device in found and found[device].get("ifalias") != _alias(lab, node.name):
        raise TrainyardError(
            f"There is a network device {device} that no lab made.", remedy=f"Remove it: ip link delete {device}."
        )
    try:
        if bridge not in found:
            # podman creates the bridge with its first container, or uses an existing one.
            _ip("link", "add", bridge, "type", "bridge")
            _ip("address", "add", f"{lab.gateway}/{lab.subnet.prefixlen}", "dev", bridge)
            _ip("link", "set", bridge, "up")
        if device not in found:
            _ip("tuntap", "add", device, "mode", "tap")
            _ip("link", "set", device, "alias", _alias(lab, node.name))
        _ip("link", "set", device, "master", bridge, "up")
    except CommandError as error:
        raise TrainyardError(
            f"This machine refuses the network device {device} of {node.name}: {error.message}",
            remedy="Provide /dev/net/tun and the right to add network devices, or make the host a container.",
        ) from error


def remove(lab: Lab, machine: str) -> None:
    _ip("link", "delete", name(lab, machine))


def _ip(*words: str) -> None:
    run(["ip", *words], timeout=TIMEOUT)


def _alias(lab: Lab, machine: str) -> str:
    return f"trainyard:{lab.name}:{machine}"
