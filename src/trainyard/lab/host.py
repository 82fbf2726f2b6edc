"""Facts of the machine that decide how a system container must be started on it."""

from __future__ import annotations

import json
import os
import resource
import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..core.plan import Step
from .model import Lab

CGROUP_ROOT = Path("/sys/fs/cgroup")
NODE_NOFILE = 1048576
"""Open files that a node would like to have; systemd's and containerd's own default."""

NODE_NPROC = 32768
"""Processes that a node may have. The engine lowers its own limit to the kernel's smallest pid_max, which is this."""

PROC_SYS = Path("/proc/sys")
KUBELET_SETTINGS = ("vm.overcommit_memory", "kernel.panic", "kernel.panic_on_oops")
"""What a kubelet sets on its kernel, which in a lab is this machine's."""

INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")
INOTIFY_INSTANCES = 1024
"""Enough for a dozen labs: the nodes of one hold 65, and the kernel allows 128 by default."""


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


def plan_inotify() -> list[Step]:
    """Raise the limit of inotify instances, which all containers of this machine share, where it is too low for labs.

    Without instances left a node's init ends without a word. The limit stays raised until the machine restarts.
    """
    limit = int(INOTIFY.read_text(encoding="ascii"))
    if limit >= INOTIFY_INSTANCES:
        return []
    what = f"Raise fs.inotify.max_user_instances from {limit} to {INOTIFY_INSTANCES}"
    return [Step(what, lambda: INOTIFY.write_text(str(INOTIFY_INSTANCES), encoding="ascii"))]


def plan_record(lab: Lab) -> list[Step]:
    """Keep the settings that the nodes' kubelets will change, in the lab's folder."""
    return [Step("Keep the kernel settings of this machine", lambda: _write_record(lab))]


def plan_restore(lab: Lab) -> list[Step]:
    """Put back what was kept and has changed since."""
    try:
        kept = json.loads(_record(lab).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [
        Step(f"Set {name} back to {kept[name]}", partial(_setting(name).write_text, kept[name], encoding="ascii"))
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
