"""The description of a lab: its name, network and nodes."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.errors import TrainyardError

LABEL = "dev.trainyard.lab"
"""Label on all objects of a lab; its value is the lab's name. Objects without it are not the lab's."""


KINDS = ("container", "machine")
"""Kinds of lab hosts: a system container, or an emulated machine with its own kernel."""


@dataclass(frozen=True)
class Node:
    """A host of the lab.

    :param name: host name; the container's name is `<lab>-<name>`.
    :param address: IPv4 address in the lab's subnet.
    :param volumes: absolute paths with a volume of their own (a container runtime cannot stack overlay on overlay).
    :param kind: one of `KINDS`.
    """

    name: str
    address: str
    volumes: tuple[str, ...]
    kind: str = "container"

    @property
    def mac(self) -> str:
        """Return an address derived from the IPv4 address, so that it survives a restart: neighbours cache it."""
        return "02:42:" + ":".join(f"{byte:02x}" for byte in ipaddress.IPv4Address(self.address).packed)


@dataclass(frozen=True)
class Machine:
    """Settings of all emulated machines of a lab.

    :param image: folder with `disk.raw`, `vmlinuz` and `initrd.img`.
    :param accelerator: `kvm`, `tcg` (software emulation), or `auto`.
    :param boot_timeout: seconds until a started machine must answer on SSH.
    """

    image: Path = Path()
    cpus: int = 2
    memory_mib: int = 3072
    disk_gib: int = 20
    accelerator: str = "auto"
    boot_timeout: int = 300


@dataclass(frozen=True)
class Gpus:
    """Simulated GPUs of the lab's containers.

    :param counts: node name -> number of GPUs.
    :param folder: folder of the bundle's artefact `lab_gpus`.
    :param profile: model, from the folder's `profiles.json`.
    :param driver: version of the driver; `cuda` is the newest CUDA version that it supports.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    folder: Path = Path()
    profile: str = ""
    driver: str = ""
    cuda: str = ""


@dataclass(frozen=True)
class Lab:
    """A lab.

    :param name: lower-case letters, digits and dashes; prefix of all containers and volumes.
    :param subnet: IPv4 network; its first address is the gateway, which is this machine.
    :param image: digest of the nodes' image; `layout` is the OCI layout that contains it.
    :param state_dir: folder of keys and known hosts.
    :param shared: absolute path of a folder that all system containers share; empty for none.
    """

    name: str
    subnet: ipaddress.IPv4Network
    nodes: tuple[Node, ...]
    layout: Path
    image: str
    state_dir: Path
    machine: Machine = Machine()
    shared: str = ""
    gpus: Gpus = Gpus()

    @property
    def containers(self) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if node.kind == "container")

    @property
    def machines(self) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if node.kind == "machine")

    @property
    def gateway(self) -> str:
        return str(self.subnet[1])

    @property
    def network(self) -> str:
        return self.name

    @property
    def table(self) -> str:
        """Return the name of the firewall table, in the family `inet`."""
        return f"lab_{self.name.replace('-', '_')}"

    @property
    def marker(self) -> Path:
        """Return the file that marks the state directory as the lab's; without it, the directory is not removed."""
        return self.state_dir / ".lab"

    @property
    def ssh_key(self) -> Path:
        return self.state_dir / "ssh" / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        return self.state_dir / "ssh" / "known_hosts"

    def host_key(self, node: Node) -> Path:
        return self.state_dir / "ssh" / "hosts" / node.name

    def container(self, node: Node) -> str:
        return f"{self.name}-{node.name}"

    def volume(self, node: Node, path: str) -> str:
        return f"{self.container(node)}{path.replace('/', '-')}"


def parse(params: Mapping[str, Any]) -> Lab:
    """Check a module's parameters and convert them to a `Lab`.

    :raises TrainyardError: a name is invalid, the state directory is not named after the lab, or an address is outside
        the subnet or used twice.
    """
    name = params["name"]
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,19}", name):
        raise TrainyardError(
            f"The lab's name {name!r} is not valid.", remedy="Use up to 20 lower-case letters, digits and dashes."
        )
    state_dir = Path(params["state_dir"])
    if state_dir.name != name:
        raise TrainyardError(
            f"The state directory {state_dir}, which is removed with the lab, does not have the lab's name {name}.",
            remedy=f"Set lab_state_dir to a folder with that name, such as {state_dir / name}.",
        )
    try:
        subnet = ipaddress.IPv4Network(params["subnet"])
    except ValueError as error:
        raise TrainyardError(f"The lab's subnet {params['subnet']!r} is not an IPv4 network: {error}.") from error
    volumes = tuple(params["volumes"])
    for node in params["nodes"]:
        # The name becomes part of a path and of a container's name.
        if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?", node):
            raise TrainyardError(
                f"The lab's node name {node!r} is not valid.",
                remedy="Use up to 42 lower-case letters, digits and dashes.",
            )
    kinds = params.get("kinds") or {}
    for node, kind in kinds.items():
        if kind not in KINDS:
            raise TrainyardError(f"The lab_kind of {node} is {kind!r}.", remedy=f"Use one of: {', '.join(KINDS)}.")
    nodes = tuple(
        Node(node, _address(node, address, subnet), volumes, kinds.get(node, KINDS[0]))
        for node, address in params["nodes"].items()
    )
    addresses = [node.address for node in nodes]
    twice = sorted({address for address in addresses if addresses.count(address) > 1})
    if twice:
        raise TrainyardError(f"Two nodes of the lab have the same address: {', '.join(twice)}.")
    image = params.get("image") or {}
    machine = {key: value for key, value in (params.get("machine") or {}).items() if value is not None}
    machine["image"] = Path(machine.get("image", ""))
    layout, digest = Path(image.get("layout", "")), image.get("digest", "")
    return Lab(name, subnet, nodes, layout, digest, state_dir, Machine(**machine), params.get("shared") or "")


def _address(node: str, address: str, subnet: ipaddress.IPv4Network) -> str:
    try:
        parsed = ipaddress.IPv4Address(address)
    except ValueError as error:
        raise TrainyardError(
            f"The address {address!r} of {node} is not an IPv4 address.", remedy="Set its ansible_host."
        ) from error
    if parsed not in subnet or parsed in (subnet[0], subnet[1], subnet[-1]):
        raise TrainyardError(
            f"The address {address} of {node} is not a node address in the lab's subnet {subnet}.",
            remedy=f"Set an address from {subnet[2]} to {subnet[-2]}.",
        )
    return str(parsed)


def fingerprint(document: Any) -> str:
    """Return a short hash of a document, with which a lab recognises objects made from the same input."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]
