"""The lab's nodes: keys, containers, and the wait until each answers on SSH."""

from __future__ import annotations

import io
import json
import os
import socket
import tarfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ansible.module_utils.trainyard.command import run
from ansible.module_utils.trainyard.errors import TrainyardError
from ansible.module_utils.trainyard.lab import host
from ansible.module_utils.trainyard.lab.model import LABEL, Lab, Node
from ansible.module_utils.trainyard.lab.podman import podman
from ansible.module_utils.trainyard.plan import Step
from ansible.module_utils.trainyard.waiter import wait_until

SSH_TIMEOUT = 90
"""Seconds until a started node must answer on SSH; 3 to 5 are usual."""


def containers(lab: Lab) -> dict[str, dict[str, Any]]:
    """Containers that this lab made, by container name, as podman's inspection shows them."""
    names = podman("ps", "--all", "--quiet", f"--filter=label={LABEL}={lab.name}").stdout.split()
    if not names:
        return {}
    return {entry["Name"]: entry for entry in json.loads(podman("inspect", *names).stdout)}


def plan_keys(lab: Lab) -> list[Step]:
    """Missing SSH key pairs, and the list of known hosts."""
    wanted = {lab.ssh_key: f"{lab.name} lab", **{lab.host_key(node): node.name for node in lab.nodes}}
    steps = [
        Step(f"Generate the SSH key {path.name}", partial(_generate, path, comment))
        for path, comment in wanted.items()
        if not path.exists()
    ]
    if steps or _pinned(lab) != _wanted_pins(lab):
        steps.append(Step("Pin the nodes' host keys", lambda: _pin(lab)))
    return steps


def plan_image(lab: Lab) -> list[Step]:
    """Bring the nodes' image into the engine's storage."""
    if not lab.layout.is_dir():
        return [Step("Load the image of the nodes from the bundle", lambda: _load(lab))]
    if podman("image", "exists", _image(lab), ok=(0, 1)).returncode == 0:
        return []
    return [Step(f"Load the image {_image(lab)}", lambda: _load(lab))]


def plan_nodes(lab: Lab, found: dict[str, dict[str, Any]]) -> tuple[list[Step], dict[str, str]]:
    """Containers to create or start.

    An existing node is never made anew: it may be part of a cluster.

    :returns: steps, and the state of each node by name.
    """
    steps: list[Step] = []
    states: dict[str, str] = {}
    for node in lab.nodes:
        name = lab.container(node)
        entry = found.get(name)
        if entry is None:
            if podman("container", "exists", name, ok=(0, 1)).returncode == 0:
                raise TrainyardError(
                    f"There is a container {name} that no lab made.", remedy="Choose another lab_name."
                )
            states[node.name] = "absent"
            steps.append(Step(f"Create the node {node.name} at {node.address}", partial(_create, lab, node)))
        elif entry["State"]["StartedAt"].startswith("0001-"):
            # Never ran: a run was interrupted between making it and giving it its keys.
            states[node.name] = "absent"
            steps.append(Step(f"Remove the unfinished node {node.name}", partial(podman, "rm", "--force", name)))
            steps.append(Step(f"Create the node {node.name} at {node.address}", partial(_create, lab, node)))
        elif _runs(entry):
            states[node.name] = "running"
        else:
            states[node.name] = "stopped"
            steps.append(Step(f"Start the node {node.name}", partial(_start, name)))
    return steps, states


def plan_removal(lab: Lab, found: Sequence[str]) -> list[Step]:
    """Everything that carries the lab's label: containers first, then their volumes."""
    steps = [_removal(name) for name in found]
    volumes = podman("volume", "ls", "--quiet", f"--filter=label={LABEL}={lab.name}").stdout.split()
    if volumes:
        what = f"Remove {len(volumes)} volumes of the lab"
        steps.append(Step(what, partial(podman, "volume", "rm", "--force", *volumes, timeout=300)))
    return steps


def plan_node_removal(lab: Lab, found: Sequence[str]) -> list[Step]:
    """The named nodes with their volumes and host keys; the others stay."""
    steps = []
    for node in lab.nodes:
        volumes = [lab.volume(node, path) for path in node.volumes]
        if lab.container(node) in found:
            steps.append(_removal(lab.container(node)))
            steps.append(
                Step(
                    f"Remove the volumes of {node.name}",
                    partial(podman, "volume", "rm", "--force", *volumes, timeout=300),
                )
            )
        if lab.host_key(node).exists():
            steps.append(Step(f"Forget the host key of {node.name}", partial(_forget, lab, node)))
    return steps


def _removal(name: str) -> Step:
    return Step(f"Remove the container {name}", partial(podman, "rm", "--force", "--time=5", "--volumes", name))


def wait_for_ssh(lab: Lab) -> None:
    """Wait until every node sends its SSH banner.

    :raises WaitError: a node does not within `SSH_TIMEOUT` seconds; it is named.
    """
    for node in lab.nodes:
        wait_until(
            partial(_banner, node.address),
            lambda banner: banner.startswith("SSH-"),
            what=f"{node.name} ({node.address}) to answer on SSH",
            timeout=SSH_TIMEOUT,
            interval=0.2,
        )


def _banner(address: str) -> str:
    try:
        with socket.create_connection((address, 22), timeout=2) as connection:
            return connection.recv(64).decode("ascii", errors="replace").strip()
    except OSError as error:
        return f"no connection ({error})"


def _runs(entry: dict[str, Any]) -> bool:
    """Whether the container's first process is alive; after a power cut the engine may believe so without looking."""
    state = entry["State"]
    return bool(state["Running"]) and state["Pid"] > 0 and os.path.exists(f"/proc/{state['Pid']}")


def _generate(path: Path, comment: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)], timeout=20)


def _pinned(lab: Lab) -> dict[str, str]:
    """The known hosts, address -> line."""
    if not lab.known_hosts.exists():
        return {}
    lines = lab.known_hosts.read_text(encoding="utf-8").splitlines()
    return {line.split()[0]: line for line in lines if line}


def _wanted_pins(lab: Lab) -> dict[str, str]:
    """Nodes that this call does not name keep their lines: several inventories may share one lab."""
    pins = _pinned(lab)
    for node in lab.nodes:
        kind, key, *_ = Path(f"{lab.host_key(node)}.pub").read_text(encoding="utf-8").split()
        pins[node.address] = f"{node.address} {kind} {key}"
    return pins


def _pin(lab: Lab) -> None:
    _write_pins(lab, _wanted_pins(lab))


def _write_pins(lab: Lab, pins: Mapping[str, str]) -> None:
    staged = lab.known_hosts.with_suffix(".new")
    staged.write_text("".join(f"{pins[address]}\n" for address in sorted(pins)), encoding="utf-8")
    staged.rename(lab.known_hosts)


def _forget(lab: Lab, node: Node) -> None:
    for path in (lab.host_key(node), Path(f"{lab.host_key(node)}.pub")):
        path.unlink(missing_ok=True)
    _write_pins(lab, {address: line for address, line in _pinned(lab).items() if address != node.address})


def _image(lab: Lab) -> str:
    return f"localhost/trainyard/lab-node:{lab.image.removeprefix('sha256:')[:16]}"


def _load(lab: Lab) -> None:
    identity = podman("pull", "--quiet", f"oci:{lab.layout}:image", timeout=300).stdout.split()[-1]
    podman("tag", identity, _image(lab))


def _create(lab: Lab, node: Node) -> None:
    name = lab.container(node)
    arguments = host.run_arguments(host.detect())
    for path in node.volumes:
        volume = lab.volume(node, path)
        podman("volume", "create", f"--label={LABEL}={lab.name}", volume, ok=(0, 125))
        arguments.append(f"--volume={volume}:{path}")
    podman(
        "create",
        f"--name={name}",
        f"--hostname={node.name}",
        f"--label={LABEL}={lab.name}",
        f"--network={lab.network}",
        f"--ip={node.address}",
        f"--dns={lab.gateway}",
        "--dns-search=.",
        "--no-hosts",
        *arguments,
        _image(lab),
    )
    podman("cp", "-", f"{name}:/", stdin=_identity(lab, node))
    _start(name)


def _start(name: str) -> None:
    # After a power cut the network's address is still taken and mounts are left: the engine's own clean-up frees them.
    podman("container", "cleanup", name, ok=(0, 1, 125))
    podman("start", name)


def _identity(lab: Lab, node: Node) -> bytes:
    """What makes the node this node, as a tar stream: its host key, the lab's public key, its name.

    The engine would write /etc/hosts anew at every start and take away what roles have added.
    """
    private, public = lab.host_key(node), Path(f"{lab.host_key(node)}.pub")
    files = {
        "etc/ssh/ssh_host_ed25519_key": (0o600, private.read_bytes()),
        "etc/ssh/ssh_host_ed25519_key.pub": (0o644, public.read_bytes()),
        "etc/hosts": (0o644, f"127.0.0.1 localhost\n{node.address} {node.name}\n".encode()),
        "root/.ssh/authorized_keys": (0o600, Path(f"{lab.ssh_key}.pub").read_bytes()),
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for place, (mode, data) in files.items():
            member = tarfile.TarInfo(place)
            member.size, member.mode = len(data), mode
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()
