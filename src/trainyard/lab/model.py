"""What a lab is: its name, its network and its nodes."""

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
"""Label on everything that a lab makes; its value is the lab's name. What lacks it belongs to somebody else."""


KINDS = ("container", "machine")
"""What a host of the lab can be: a system container, or an emulated machine with a kernel of its own."""


@dataclass(frozen=True)
class Node:
    """A host of the lab.

    :param name: host name; the container's is `<lab>-<name>`.
    :param address: IPv4 address in the lab's subnet.
    :param volumes: absolute paths that get a volume of their own (a container runtime cannot put overlay on overlay).
    :param kind: one of `KINDS`.
    """

    name: str
    address: str
    volumes: tuple[str, ...]
    kind: str = "container"

    @property
    def mac(self) -> str:
        """Made from the IPv4 address, so that it survives a restart: neighbours would go on using the old one."""
        return "02:42:" + ":".join(f"{byte:02x}" for byte in ipaddress.IPv4Address(self.address).packed)


@dataclass(frozen=True)
class Machine:
    """What every emulated machine of a lab is given.

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
    """GPUs of the lab's containers that are not there.

    :param counts: how many each node has, by name.
    :param folder: what the bundle made (`lab_gpus`).
    :param profile: model, one of the folder's `profiles.json`.
    :param driver: version of the driver, `cuda` the newest CUDA that it knows.
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
    :param image: digest of the nodes' image, and `layout`, the OCI layout that holds it.
    :param state_dir: folder of keys and known hosts.
    :param shared: absolute path of a folder that all system containers have in common; empty for none.
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
        """Name of the firewall table, in the family `inet`."""
        return f"lab_{self.name.replace('-', '_')}"

    @property
    def marker(self) -> Path:
        """File that says whose folder the state directory is; without it the folder is not removed."""
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
    """Check a module's parameters and make them a `Lab`.

    :raises TrainyardError: a name that cannot be one, a state directory that is not the lab's own, an address outside
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
            remedy=f"Set lab_state_dir to a folder of the lab's own, such as {state_dir / name}.",
        )
    try:
        subnet = ipaddress.IPv4Network(params["subnet"])
    except ValueError as error:
        raise TrainyardError(f"The lab's subnet {params['subnet']!r} is not an IPv4 network: {error}.") from error
    volumes = tuple(params["volumes"])
    for node in params["nodes"]:
        # Becomes a path and the name of a container.
        if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?", node):
            raise TrainyardError(
                f"The lab cannot have a node named {node!r}.",
                remedy="Give it a name of up to 42 lower-case letters, digits and dashes.",
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
            f"The address {address} of {node} is not one of the lab's subnet {subnet} that a node can have.",
            remedy=f"Give an address from {subnet[2]} to {subnet[-2]}.",
        )
    return str(parsed)


def fingerprint(document: Any) -> str:
    """Short hash by which a lab recognises what it made from the same input."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]
