"""The lab's nodes: their containers, and a wait until all answer on SSH."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..core.errors import TrainyardError
from ..core.plan import Step
from ..core.waiter import wait_until
from . import host, keys, simulated_gpus
from .host import podman
from .lab_model import LABEL, Lab, Node

IMAGE = "localhost/trainyard/lab-node"
"""Name of the nodes' image in the engine's storage; its tag is a prefix of the digest."""
PROC = Path("/proc")
EXITS = Path("/run/libpod/exits")
"""Folder in which podman's monitors record exit codes of root's containers."""
SSH_TIMEOUT = 90
"""Seconds within which a started node must answer on SSH; 3 to 5 are usual."""


def containers(lab: Lab) -> dict[str, dict[str, Any]]:
    """Return podman's inspection of this lab's containers, by container name."""
    names = podman("ps", "--all", "--quiet", f"--filter=label={LABEL}={lab.name}").stdout.split()
    if not names:
        return {}
    return {entry["Name"]: entry for entry in json.loads(podman("inspect", *names).stdout)}


def plan_image(lab: Lab) -> list[Step]:
    """Plan to import the nodes' image into the engine's storage."""
    # A call that only looks has no image.
    if not lab.image or not lab.layout.is_dir():
        return [Step("Load the image of the nodes from the bundle", lambda: _load(lab))]
    if podman("image", "exists", _image(lab), ok=(0, 1)).returncode == 0:
        return []
    return [Step(f"Load the image {_image(lab)}", lambda: _load(lab))]


def plan_nodes(lab: Lab, found: dict[str, dict[str, Any]]) -> tuple[list[Step], dict[str, str]]:
    """Plan to create or start containers.

    An existing node is never recreated, because it may be part of a cluster.

    :returns: steps, and the state of each node by name.
    :raises TrainyardError: a name is taken, or a node was created before the lab had a shared folder.
    """
    steps: list[Step] = []
    states: dict[str, str] = {}
    for node in lab.containers:
        name = lab.container(node)
        entry = found.get(name)
        if entry and lab.shared and lab.shared not in [each["Destination"] for each in entry.get("Mounts", [])]:
            raise TrainyardError(
                f"The node {node.name} was created without the shared folder {lab.shared}.",
                remedy="Recreate the lab (lab_down.yml, then site.yml), or empty lab_shared_path and storage_backend.",
            )
        if entry is None:
            if podman("container", "exists", name, ok=(0, 1)).returncode == 0:
                raise TrainyardError(f"There is a container {name} that no lab made.", remedy="Set another lab_name.")
            states[node.name] = "absent"
            steps.append(Step(f"Create the node {node.name} at {node.address}", partial(_create, lab, node)))
        elif entry["State"]["StartedAt"].startswith("0001-"):
            # The node never ran: a run was interrupted after its creation, before it got its keys.
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
    """Plan to remove all objects with the lab's label: containers first, then volumes; also an unused image."""
    steps = [_removal(name) for name in found]
    volumes = podman("volume", "ls", "--quiet", f"--filter=label={LABEL}={lab.name}").stdout.split()
    if volumes:
        what = f"Remove {len(volumes)} volumes of the lab"
        steps.append(Step(what, partial(podman, "volume", "rm", "--force", *volumes, timeout=300)))
    images = podman("images", "--format={{.Repository}}:{{.Tag}}", IMAGE).stdout.split()
    used = podman("ps", "--all", "--format={{.Image}}").stdout.split()
    if images and len([image for image in used if image in images]) <= len(found):
        # No other lab uses the image.
        steps.append(Step("Remove the nodes' image", partial(podman, "rmi", *images)))
    return steps


def plan_node_removal(lab: Lab, found: Sequence[str]) -> list[Step]:
    """Plan to remove the lab's given nodes with their volumes and host keys; the others stay."""
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
            steps.append(Step(f"Forget the host key of {node.name}", partial(keys.forget, lab, node)))
    return steps


def _removal(name: str) -> Step:
    return Step(f"Remove the container {name}", partial(podman, "rm", "--force", "--time=5", "--volumes", name))


def wait_for_ssh(lab: Lab) -> None:
    """Wait until all nodes send their SSH banner.

    :raises WaitError: a container did not within `SSH_TIMEOUT` seconds, or a machine within `boot_timeout`; the message
        contains its name.
    """
    for node in lab.nodes:
        is_machine = node.kind == "machine"
        wait_until(
            partial(_banner, node.address),
            lambda banner: banner.startswith("SSH-"),
            what=f"{node.name} ({node.address}) to answer on SSH"
            + (f", console in {lab.state_dir}/machines/{node.name}/console.log" if is_machine else ""),
            timeout=lab.machine.boot_timeout if is_machine else SSH_TIMEOUT,
            interval=0.2,
        )


def _banner(address: str) -> str:
    try:
        with socket.create_connection((address, 22), timeout=2) as connection:
            return connection.recv(64).decode("ascii", errors="replace").strip()
    except OSError as error:
        return f"no connection ({error})"


def _runs(entry: dict[str, Any]) -> bool:
    """Return whether the container's first process is alive; after a power cut, the engine's state may be wrong.

    The process must be in the container's own control group, because its ID may have been reused.
    """
    state = entry["State"]
    try:
        groups = (PROC / str(state["Pid"]) / "cgroup").read_text(encoding="utf-8")
    except OSError:
        return False
    return bool(state["Running"]) and entry["Id"] in groups


def _image(lab: Lab) -> str:
    return f"{IMAGE}:{lab.image.removeprefix('sha256:')[:16]}"


def _load(lab: Lab) -> None:
    identity = podman("pull", "--quiet", f"oci:{lab.layout}:image", timeout=300).stdout.split()[-1]
    podman("tag", identity, _image(lab))
    # podman also tags the image with the layout's path; remove that tag.
    podman("untag", identity, f"localhost{lab.layout}:latest", ok=(0, 125))


def _create(lab: Lab, node: Node) -> None:
    name = lab.container(node)
    arguments = host.run_arguments(host.detect())
    volumes = {lab.volume(node, path): path for path in node.volumes}
    if lab.shared:
        volumes[f"{lab.name}-shared"] = lab.shared
    for volume, path in volumes.items():
        podman("volume", "create", f"--label={LABEL}={lab.name}", volume, ok=(0, 125))
        arguments.append(f"--volume={volume}:{path}")
    podman(
        "create",
        f"--name={name}",
        f"--hostname={node.name}",
        f"--label={LABEL}={lab.name}",
        f"--network={lab.network}",
        f"--ip={node.address}",
        f"--mac-address={node.mac}",
        f"--dns={lab.gateway}",
        "--dns-search=.",
        "--no-hosts",
        *arguments,
        _image(lab),
    )
    podman("cp", "-", f"{name}:/", stdin=keys.identity(lab, node))
    simulated_gpus.forget(lab, node)
    _start(name)


def _start(name: str) -> None:
    _record_lost_exit(name)
    # After a power cut, the network address is still reserved and mounts remain; the engine's own cleanup frees them.
    podman("container", "cleanup", name, ok=(0, 1, 125))
    podman("start", name)


def _record_lost_exit(name: str) -> None:
    """Record the exit of a container for the engine, if its monitor was killed as well.

    Without the monitor's record, the engine considers the container running for ever, and neither starts nor stops it.
    """
    entry = json.loads(podman("inspect", name).stdout)[0]
    state = entry["State"]
    # A container that never ran has no monitor.
    monitor = state.get("ConmonPid", 0)
    monitored = monitor > 0 and os.path.exists(f"/proc/{monitor}")
    if state["Status"] in ("running", "stopping", "paused") and not _runs(entry) and not monitored:
        (EXITS / entry["Id"]).write_text("137", encoding="ascii")
