"""The stages that need the driver alone: `host`, `nvml` and `cdi`."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from ...core.command import run
from ...core.errors import CommandError, TrainyardError
from ...core.untrusted import at, items, line, mapping
from ...host.nvidia import nvswitch_problems, observe_nvswitches
from .. import look, nvml, smi
from ..gpu_model import Gpu, Inventory
from .report import Kit, Result, failed, judged

ROOT = Path("/")
VOLATILE = ("memory_used_mib", "temperature_celsius", "power_draw_watts", "utilization_percent", "xids")
"""Readings that change between two queries; both sources must have them, or neither. Only the log has `xids`."""
WATTS = 0.01
"""Tolerance in watts: NVML gives milliwatts, and nvidia-smi two decimals."""
CONTROL = ("nvidiactl", "nvidia-uvm")
"""Device nodes that each CUDA program opens."""
CDI_TIMEOUT = 60
ANY = "nvidia.com/gpu"


def binding(kit: Kit) -> Path:
    """Unpack NVIDIA's Python binding of NVML from its wheel, and return its file.

    :raises TrainyardError: the kit is incomplete.
    """
    target = kit.work / "pynvml.py"
    wheel = next(iter(sorted((kit.root / "wheels").glob("nvidia_ml_py-*.whl"))), None)
    if wheel is None:
        raise TrainyardError(f"The kit {kit.root} has no wheel nvidia_ml_py.", remedy="Unpack the kit again.")
    if not target.exists():
        with zipfile.ZipFile(wheel) as archive:
            target.write_bytes(archive.read("pynvml.py"))
    return target


def host(kit: Kit) -> Result:
    """Check kernel module, library, device nodes and NVSwitches of the driver."""
    found = look.look(binding(kit))
    faults = [*_driver_faults(found), *_node_faults(found)]
    faults += [str(each) for each in nvswitch_problems(observe_nvswitches(ROOT), installed=True)]
    names = ", ".join(sorted({gpu.name for gpu in found.gpus}))
    return judged(
        faults,
        f"{len(found.gpus)} {names}, driver {found.driver}, CUDA up to {found.cuda}",
        gpus=len(found.gpus),
        driver=found.driver or "",
        cuda=found.cuda or "",
    )


def _driver_faults(found: Inventory) -> Iterator[str]:
    if not found.on_bus:
        yield "the PCI bus shows no NVIDIA GPU"
    if not look.module_version():
        yield "the kernel module nvidia is not loaded"
    if (ROOT / "sys/module/nouveau").exists():
        yield "the kernel module nouveau is loaded"
    if found.source == "none":
        yield f"the driver does not answer: {found.error}"
    elif found.source != "nvml":
        yield f"NVML does not answer, only {found.source}"
    if found.skew:
        yield f"the module is {found.module_version}, but the library is {found.library_version}"
    if found.pending:
        yield f"the host has {found.pending}"
    if found.source != "none" and found.on_bus and len(found.gpus) != found.on_bus:
        yield f"the driver shows {len(found.gpus)} of {found.on_bus} GPUs on the bus"
    for gpu in found.gpus:
        yield from (f"GPU {gpu.index}: {problem}" for problem in gpu.problems)


def _node_faults(found: Inventory) -> Iterator[str]:
    nodes = [*CONTROL, *(f"nvidia{gpu.minor}" for gpu in found.gpus if gpu.minor is not None)]
    missing = [f"/dev/{name}" for name in nodes if not (ROOT / "dev" / name).exists()]
    if missing:
        yield f"{', '.join(missing)} does not exist (nvidia-modprobe -c 0 -u creates it)"


def readings(kit: Kit) -> Inventory:
    """Return what NVML reports.

    :raises TrainyardError: it reports no GPU.
    """
    found = nvml.read(nvml.load(binding(kit)))
    if found.source == "none" or not found.gpus:
        raise TrainyardError(f"NVML reports no GPU: {found.error or 'the driver shows none'}.")
    return found


def compare(kit: Kit) -> Result:
    """Compare what the module `gpu_info` reads from NVML with the output of nvidia-smi (stage `nvml`)."""
    own = readings(kit)
    try:
        capabilities = run(smi.CAPABILITIES, timeout=look.TIMEOUT).stdout
        theirs = smi.read(run(smi.QUERY, timeout=look.TIMEOUT).stdout, capabilities)
    except CommandError as error:
        return failed(f"nvidia-smi does not answer: {error}")
    faults = list(differences(own, theirs))
    return judged(faults, f"{len(own.gpus)} GPUs have equal values in NVML and nvidia-smi", gpus=len(own.gpus))


def differences(own: Inventory, theirs: Inventory) -> Iterator[str]:
    """Yield each value that differs between NVML (`own`) and nvidia-smi, as text."""
    for name in ("driver", "cuda"):
        if getattr(own, name) != getattr(theirs, name):
            yield f"{name}: {getattr(own, name)}, nvidia-smi: {getattr(theirs, name)}"
    if len(own.gpus) != len(theirs.gpus):
        yield f"{len(own.gpus)} GPUs, nvidia-smi: {len(theirs.gpus)}"
    for one, other in zip(own.gpus, theirs.gpus):  # noqa: B905 - different numbers are reported above
        for each in fields(Gpu):
            ours, shown = getattr(one, each.name), getattr(other, each.name)
            if not _equal(each.name, ours, shown):
                yield f"GPU {one.index} {each.name}: {ours}, nvidia-smi: {shown}"


def _equal(name: str, ours: Any, shown: Any) -> bool:
    if name in VOLATILE:
        return (ours is None) == (shown is None)
    if name.endswith("_watts") and ours is not None and shown is not None:
        return abs(ours - shown) <= WATTS
    return bool(ours == shown)


def cdi(kit: Kit) -> Result:
    """Let NVIDIA's toolkit describe the GPUs for containers, and look up each described path. Writes no file of the
    host."""
    found = readings(kit)
    target = kit.work / "cdi.json"
    hook = kit.program("nvidia-cdi-hook")
    argv = [kit.program("nvidia-ctk"), "--quiet", "cdi", "generate", "--format=json", f"--output={target}"]
    run([*argv, f"--nvidia-cdi-hook-path={hook}"], timeout=CDI_TIMEOUT)
    try:
        described = json.loads(target.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        return failed(f"nvidia-ctk wrote no description: {error}")
    faults = list(description_faults(mapping(described), found, ROOT))
    devices = [line(at(each, "name"), 80) for each in items(at(described, "devices"))]
    return judged(faults, f"{ANY} describes {', '.join(devices)}", devices=len(devices))


def description_faults(described: Mapping[str, Any], found: Inventory, root: Path) -> Iterator[str]:
    """Yield each GPU without a device of its own, and each described path that does not exist, as text."""
    if described.get("kind") != ANY:
        yield f"the description is of {line(described.get('kind'), 80)!r}, not of {ANY}"
    devices = {str(at(each, "name")): mapping(at(each, "containerEdits")) for each in items(described.get("devices"))}
    for gpu in found.gpus:
        names = [name for name in devices if name in (str(gpu.index), gpu.uuid) or name.startswith(f"{gpu.index}:")]
        node = f"/dev/nvidia{gpu.minor}"
        if not any(node in _nodes(devices[name]) for name in names):
            yield f"no device of GPU {gpu.index} has {node}"
    if "all" not in devices:
        yield "there is no device `all`"
    edits = [mapping(described.get("containerEdits")), *devices.values()]
    for path in sorted({path for each in edits for path in _paths(each)}):
        if not (root / path.lstrip("/")).exists():
            yield f"{line(path, 200)} does not exist"


def _nodes(edits: Mapping[str, Any]) -> list[str]:
    return [str(at(each, "hostPath") or at(each, "path")) for each in items(edits.get("deviceNodes"))]


def _paths(edits: Mapping[str, Any]) -> Iterator[str]:
    yield from _nodes(edits)
    yield from (str(at(each, "hostPath")) for each in items(edits.get("mounts")))
    yield from (str(at(each, "path")) for each in items(edits.get("hooks")))
