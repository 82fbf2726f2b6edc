"""Simulated GPUs of the lab's containers: a library that answers like a driver's, device nodes, `nvidia-smi`.

Their sources are in `roles/lab/files/gpu`; the program `lab-gpus` there installs them on the host.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ..core.errors import TrainyardError
from ..core.plan import Step
from .host import podman
from .lab_model import Gpus, Lab, Node, fingerprint

HOME = "usr/lib/lab-gpus"
"""Folder on the host with the files that `lab-gpus` installs."""
PROGRAM = "usr/local/sbin/lab-gpus"
PARTS = ("libnvidia-ml.so", "nvidia-smi", "profiles.json")
TIMEOUT = 60
"""Seconds for the program on the host."""


def plan(lab: Lab, states: Mapping[str, str]) -> list[Step]:
    """Plan to install simulated GPUs on the nodes that need them, and to remove them from the others.

    :param states: state of each node before the run; absent nodes have no GPUs yet.
    :raises TrainyardError: a node with GPUs is not a container.
    """
    steps = []
    for node in lab.nodes:
        count = lab.gpus.counts.get(node.name, 0)
        if count and node.kind != "container":
            raise TrainyardError(
                f"{node.name} is an emulated machine, which cannot have {count} GPUs of the lab.",
                remedy=f"Set lab_gpus of {node.name} to 0.",
            )
        kept = _kept(lab, node) if states.get(node.name) in ("running", "stopped") else ""
        if count and kept != _wanted(lab, node):
            what = f"Install {count} GPUs of the lab on {node.name} ({lab.gpus.profile}, driver {lab.gpus.driver})"
            steps.append(Step(what, partial(_install, lab, node)))
        elif kept and not count:
            steps.append(Step(f"Remove the GPUs from {node.name}", partial(_install, lab, node)))
    return steps


def parse(params: Mapping[str, Any]) -> Gpus:
    """Check a module's parameters.

    :raises TrainyardError: a number or a version is invalid.
    """
    counts = {name: int(count) for name, count in (params.get("counts") or {}).items()}
    for name, count in counts.items():
        if count not in range(17):
            raise TrainyardError(f"The lab_gpus of {name} is {count}.", remedy="Use 0 to 16.")
    driver, cuda = params.get("driver") or "", params.get("cuda") or ""
    if any(counts.values()):
        if not re.fullmatch(r"\d{3}\.\d{2,3}(\.\d{2})?", driver):
            raise TrainyardError(f"The lab_gpu_driver is {driver!r}.", remedy="Use a version such as 580.95.05.")
        if not re.fullmatch(r"\d{2}\.\d", cuda):
            raise TrainyardError(f"The lab_gpu_cuda is {cuda!r}.", remedy="Use a version such as 13.0.")
    return Gpus(counts, Path(params.get("folder") or "/nonexistent"), params.get("profile") or "", driver, cuda)


def forget(lab: Lab, node: Node) -> None:
    """Remove a node's record, so that a later node of the same name starts without GPUs."""
    _record(lab, node).unlink(missing_ok=True)


def _install(lab: Lab, node: Node) -> None:
    count = lab.gpus.counts.get(node.name, 0)
    name = lab.container(node)
    profile = lab.gpus.profile
    if count:
        podman("cp", "-", f"{name}:/", stdin=_files(lab.gpus.folder))
    else:
        profile = json.loads(_record(lab, node).read_text(encoding="utf-8"))["profile"]
    arguments = [str(count), f"--profile={profile}", f"--driver={lab.gpus.driver}", f"--cuda={lab.gpus.cuda}"]
    podman("exec", name, f"/{PROGRAM}", "install", *arguments, f"--seed={name}", timeout=TIMEOUT)
    record = _record(lab, node)
    if count:
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(json.dumps({"profile": profile, "made": _wanted(lab, node)}), encoding="utf-8")
    else:
        record.unlink()


def _files(folder: Path) -> bytes:
    """Return the bundle's files as a tar stream for the host's root."""
    if not folder.is_dir():
        raise TrainyardError(
            f"The bundle does not contain the GPUs of the lab: the folder {folder} does not exist.",
            remedy="Add lab_gpus to bundle_artefacts_also.",
        )
    places = {f"{HOME}/{part}": folder / part for part in PARTS} | {PROGRAM: folder / "lab-gpus"}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for place, source in places.items():
            member = tarfile.TarInfo(place)
            data = source.read_bytes()
            member.size, member.mode = len(data), 0o755
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def _wanted(lab: Lab, node: Node) -> str:
    gpus = lab.gpus
    return fingerprint([gpus.counts.get(node.name, 0), str(gpus.folder), gpus.profile, gpus.driver, gpus.cuda])


def _kept(lab: Lab, node: Node) -> str:
    """Return the fingerprint of the GPUs installed on a node, as from `_wanted`; empty if there are none."""
    try:
        return str(json.loads(_record(lab, node).read_text(encoding="utf-8"))["made"])
    except (OSError, ValueError, KeyError):
        return ""


def _record(lab: Lab, node: Node) -> Path:
    return lab.state_dir / "gpus" / f"{node.name}.json"
