"""Facts of the machine that decide how a system container must be started on it."""

from __future__ import annotations

import os
import resource
import shutil
from dataclasses import dataclass
from pathlib import Path

from ansible.module_utils.trainyard.errors import TrainyardError

CGROUP_ROOT = Path("/sys/fs/cgroup")
NODE_NOFILE = 1048576
"""Open files that a node would like to have; systemd's and containerd's own default."""

NODE_NPROC = 32768
"""Processes that a node may have. The engine lowers its own limit to the kernel's smallest pid_max, which is this."""

INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")
INOTIFY_PER_NODE = 17
"""Instances that systemd, containerd, kubelet and the system pods of a node hold: 65 for a lab of four."""


@dataclass(frozen=True)
class HostFacts:
    """What was found.

    :param cgroup_version: 1 (also when mixed) or 2.
    :param nofile: hard limit of open files that a container can be given.
    :param nproc: hard limit of processes that a container can be given.
    :param runtime: path of the OCI runtime to use, or empty for the engine's own choice.
    :param kmsg: whether there is a kernel log device for the kubelet to watch.
    """

    cgroup_version: int
    nofile: int
    nproc: int
    runtime: str
    kmsg: bool


def detect() -> HostFacts:
    version = 2 if (CGROUP_ROOT / "cgroup.controllers").exists() else 1
    # crun refuses a mixed cgroup hierarchy; on version 2 the engine's own choice is right.
    runtime = (shutil.which("runc") or "") if version == 1 else ""
    return HostFacts(
        version,
        _limit(resource.RLIMIT_NOFILE, NODE_NOFILE),
        _limit(resource.RLIMIT_NPROC, NODE_NPROC),
        runtime,
        os.path.exists("/dev/kmsg"),
    )


def _limit(which: int, wanted: int) -> int:
    """The wanted limit, or what this process may pass on: raising a hard limit takes a capability."""
    hard = resource.getrlimit(which)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)


def check_inotify(nodes: int) -> None:
    """Refuse a machine on which the nodes' programs would run out of inotify instances, which all containers share.

    :raises TrainyardError: the limit is below `INOTIFY_PER_NODE` for each node.
    """
    limit = int(INOTIFY.read_text(encoding="ascii"))
    if limit < nodes * INOTIFY_PER_NODE:
        wanted = nodes * INOTIFY_PER_NODE
        raise TrainyardError(
            f"This machine allows {limit} inotify instances, {nodes} nodes need {wanted}.",
            remedy=f"Run: sysctl -w fs.inotify.max_user_instances={2 * wanted}",
        )


def run_arguments(facts: HostFacts) -> list[str]:
    """Options of `podman create` for a container that boots systemd.

    `--systemd=false` with own mounts, because podman's systemd mode binds the host's whole systemd hierarchy into every
    container on cgroup version 1, so that nodes see each other's units; with a private cgroup namespace each node has
    its own on either version.
    """
    arguments = [
        "--privileged",
        "--systemd=false",
        "--env=container=podman",
        "--stop-signal=SIGRTMIN+3",
        "--cgroupns=private",
    ]
    arguments += ["--tmpfs=/run:rw,exec,mode=755", "--tmpfs=/run/lock", "--tmpfs=/tmp:exec"]
    arguments += [f"--ulimit=nofile={facts.nofile}:{facts.nofile}", f"--ulimit=nproc={facts.nproc}:{facts.nproc}"]
    if facts.kmsg:
        arguments.append("--volume=/dev/kmsg:/dev/kmsg")
    return arguments
