"""The lab's nodes: their containers, and the wait until each answers on SSH."""

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
from . import gpus, host, keys
from .model import LABEL, Lab, Node
from .podman import podman

IMAGE = "localhost/trainyard/lab-node"
"""Name of the nodes' image in the engine's storage; its tag is the digest's beginning."""
PROC = Path("/proc")
EXITS = Path("/run/libpod/exits")
"""Where podman's monitors record the exit code of a container, for root."""
SSH_TIMEOUT = 90
"""Seconds until a started node must answer on SSH; 3 to 5 are usual."""


def containers(lab: Lab) -> dict[str, dict[str, Any]]:
    """Containers that this lab made, by container name, as podman's inspection shows them."""
    names = podman("ps", "--all", "--quiet", f"--filter=label={LABEL}={lab.name}").stdout.split()
    if not names:
        return {}
    return {entry["Name"]: entry for entry in json.loads(podman("inspect", *names).stdout)}


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
    :raises TrainyardError: a name is taken, or a node was made before the lab had a shared folder.
    """
    steps: list[Step] = []
    states: dict[str, str] = {}
    for node in lab.containers:
        name = lab.container(node)
        entry = found.get(name)
        if entry and lab.shared and lab.shared not in [each["Destination"] for each in entry.get("Mounts", [])]:
            raise TrainyardError(
                f"The node {node.name} was made without the folder {lab.shared} that all nodes share.",
                remedy="Make the lab anew (lab_down.yml, then site.yml), or empty lab_shared_path and storage_backend.",
            )
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
    images = podman("images", "--format={{.Repository}}:{{.Tag}}", IMAGE).stdout.split()
    used = podman("ps", "--all", "--format={{.Image}}").stdout.split()
    if images and len([image for image in used if image in images]) <= len(found):
        # No other lab's nodes are made from it.
        steps.append(Step("Remove the nodes' image", partial(podman, "rmi", *images)))
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
            steps.append(Step(f"Forget the host key of {node.name}", partial(keys.forget, lab, node)))
    return steps


def _removal(name: str) -> Step:
    return Step(f"Remove the container {name}", partial(podman, "rm", "--force", "--time=5", "--volumes", name))


def wait_for_ssh(lab: Lab) -> None:
    """Wait until every node sends its SSH banner.

    :raises WaitError: a container does not within `SSH_TIMEOUT` seconds, or a machine within its own; it is named.
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
    """Whether the container's first process is alive; after a power cut the engine may believe so without looking.

    The process must be in the container's own control group: its number may be another's by now.
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
    # podman also tags it with the layout's path; drop that tag.
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
    gpus.forget(lab, node)
    _start(name)


def _start(name: str) -> None:
    _record_lost_exit(name)
    # After a power cut the network's address is still taken and mounts are left: the engine's own clean-up frees them.
    podman("container", "cleanup", name, ok=(0, 1, 125))
    podman("start", name)


def _record_lost_exit(name: str) -> None:
    """Tell the engine that a container has ended where the monitor that would have told it was killed as well.

    Without the monitor's record the engine believes for ever that the container runs, and neither starts nor stops it.
    """
    entry = json.loads(podman("inspect", name).stdout)[0]
    state = entry["State"]
    # A container that has never run shows no monitor.
    monitor = state.get("ConmonPid", 0)
    monitored = monitor > 0 and os.path.exists(f"/proc/{monitor}")
    if state["Status"] in ("running", "stopping", "paused") and not _runs(entry) and not monitored:
        (EXITS / entry["Id"]).write_text("137", encoding="ascii")
