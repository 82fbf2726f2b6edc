"""The machines' network devices: taps on the bridge of the lab's containers, with the same outbound block."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from ..core.command import run
from ..core.errors import CommandError, TrainyardError
from . import network
from .model import Lab, Node

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
    bridge, device = network.bridge(lab), name(lab, node.name)
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
