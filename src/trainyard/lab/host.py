"""The machine that runs a lab: its facts, its kernel settings, and calls to the container engine.

The facts determine how to start a system container.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..core.command import run
from ..core.plan import Step
from .lab_model import Lab

CGROUP_ROOT = Path("/sys/fs/cgroup")
NODE_NOFILE = 1048576
"""Desired limit of open files of a node; systemd's and containerd's own default."""

NODE_NPROC = 32768
"""Process limit of a node. The engine lowers its own limit to the kernel's smallest pid_max, which is this."""

PROC_SYS = Path("/proc/sys")
KUBELET_SETTINGS = ("vm.overcommit_memory", "kernel.panic", "kernel.panic_on_oops")
"""Settings that a kubelet changes on its kernel, which in a lab is this machine's."""

INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")
INOTIFY_INSTANCES = 1024
"""Enough for a dozen labs: the nodes of one lab use 65, and the kernel's default is 128."""


@dataclass(frozen=True)
class HostFacts:
    """Facts of this machine.

    :param cgroup_version: 1 (also for a mixed hierarchy) or 2.
    :param nofile: highest hard limit of open files for a container.
    :param nproc: highest hard limit of processes for a container.
    :param runtime: path of the OCI runtime to use, or empty for the engine's own choice.
    :param kmsg: whether the machine has a kernel log device, which the kubelet watches.
    """

    cgroup_version: int
    nofile: int
    nproc: int
    runtime: str
    kmsg: bool


def detect() -> HostFacts:
    version = 2 if (CGROUP_ROOT / "cgroup.controllers").exists() else 1
    # crun refuses a mixed cgroup hierarchy; on version 2 the engine's own choice is correct.
    runtime = (shutil.which("runc") or "") if version == 1 else ""
    return HostFacts(
        version,
        _limit(resource.RLIMIT_NOFILE, NODE_NOFILE),
        _limit(resource.RLIMIT_NPROC, NODE_NPROC),
        runtime,
        os.path.exists("/dev/kmsg"),
    )


def _limit(which: int, wanted: int) -> int:
    """Return the desired limit, or this process's own hard limit, because raising it needs a capability."""
    hard = resource.getrlimit(which)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)


def plan_inotify() -> list[Step]:
    """Plan to raise the limit of inotify instances, which all containers of this machine share, if it is too low.

    If no instances are left, a node's init exits silently. The limit stays raised until the machine restarts.
    """
    limit = int(INOTIFY.read_text(encoding="ascii"))
    if limit >= INOTIFY_INSTANCES:
        return []
    what = f"Raise fs.inotify.max_user_instances from {limit} to {INOTIFY_INSTANCES}"
    return [Step(what, lambda: INOTIFY.write_text(str(INOTIFY_INSTANCES), encoding="ascii"))]


def plan_record(lab: Lab) -> list[Step]:
    """Plan to save the settings that the nodes' kubelets will change, in the lab's folder."""
    return [Step("Save the kernel settings of this machine", lambda: _write_record(lab))]


def plan_restore(lab: Lab) -> list[Step]:
    """Plan to restore saved settings that have changed since."""
    try:
        kept = json.loads(_record(lab).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [
        Step(f"Restore {name} to {kept[name]}", partial(_setting(name).write_text, kept[name], encoding="ascii"))
        for name in KUBELET_SETTINGS
        if name in kept and _read(name) != kept[name]
    ]


def _record(lab: Lab) -> Path:
    return lab.state_dir / "kernel_settings.json"


def _write_record(lab: Lab) -> None:
    lab.state_dir.mkdir(parents=True, exist_ok=True)
    _record(lab).write_text(json.dumps({name: _read(name) for name in KUBELET_SETTINGS}), encoding="utf-8")


def _setting(name: str) -> Path:
    return PROC_SYS / name.replace(".", "/")


def _read(name: str) -> str:
    return _setting(name).read_text(encoding="ascii").strip()


def run_arguments(facts: HostFacts) -> list[str]:
    """Return the options of `podman create` for a container that boots systemd.

    They use `--systemd=false` with explicit mounts. On cgroup version 1, podman's systemd mode would mount the host's
    whole systemd hierarchy into each container, so that nodes would see each other's units. With a private cgroup
    namespace, each node has its own hierarchy on both versions.
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


TIMEOUT = 120
"""Seconds for one call; creating a container from a 300 MB image takes about one."""


def missing(*more: str) -> list[str]:
    """Return the required programs that are not installed; check mode may run before their installation.

    :param more: additional programs.
    """
    return [program for program in ("podman", "nft", "ip", *more) if not shutil.which(program)]


def podman(
    *arguments: str, ok: Sequence[int] = (0,), stdin: bytes | None = None, timeout: float = TIMEOUT
) -> subprocess.CompletedProcess[str]:
    """Run podman with the OCI runtime that this machine needs."""
    runtime = detect().runtime
    selected = [f"--runtime={runtime}"] if runtime else []
    return run(["podman", *selected, *arguments], timeout=timeout, ok=ok, stdin=stdin)
