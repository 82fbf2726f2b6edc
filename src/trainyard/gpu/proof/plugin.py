"""The stage `plugin`: NVIDIA's device plugin, with a stand-in for the kubelet.

Folders of the plugin are constants of its program. The stage therefore runs in a mount namespace of its own, in which
empty file systems cover them. The kubelet and the plugin of an existing node do not notice it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...core.command import run
from ...core.errors import CommandError
from ...core.untrusted import at, items, line, mapping
from ..gpu_model import Inventory
from .driver import ANY, readings
from .report import Kit, Result, failed, judged, not_run

SOCKET = Path("/var/lib/kubelet/device-plugins/kubelet.sock")
"""Constant of the device plugin API, v1beta1."""
CDI = Path("/var/run/cdi")
"""Folder in which the plugin describes its devices."""
INSIDE = Path(__file__).with_name("in_namespace.py").resolve()
TIMEOUT = 120
"""Seconds for the whole; the stand-in waits 60 s for the plugin."""
HEALTHY = "Healthy"


def plugin(kit: Kit) -> Result:
    """Start the device plugin, read the GPUs that it offers, and allocate one of them as the kubelet does."""
    if os.geteuid():
        return not_run("The device plugin needs root. Run the stage with sudo.")
    covers = [cover(SOCKET.parent), cover(CDI)]
    if any(kit.root.resolve().is_relative_to(each) for each in covers):
        return not_run(f"The kit lies in {kit.root}, which this stage covers. Move it to another folder.")
    found = readings(kit)
    # Nothing outlives the stage, however it ends: `unshare` ignores SIGTERM, and its end ends the process namespace.
    argv = ["setpriv", "--pdeathsig=KILL", "--", "unshare", "--mount", "--propagation=private"]
    argv += ["--pid", "--fork", "--kill-child", "--"]
    argv += [sys.executable, "-IB", str(INSIDE)]
    argv += [str(kit.root / "bin"), str(SOCKET), str(CDI), *dict.fromkeys(map(str, covers))]
    try:
        output = run(argv, timeout=TIMEOUT).stdout
        seen = mapping(json.loads(output))
    except (CommandError, ValueError, RecursionError) as error:
        return failed(f"The device plugin offered nothing: {error}")
    devices = items(at(seen, "report", "devices"))
    faults = list(offer_faults(seen, found))
    return judged(
        faults,
        f"{len(devices)} GPUs are offered as {ANY}, and {line(at(seen, 'report', 'allocated'), 80)} was allocated",
        devices=len(devices),
    )


def cover(folder: Path) -> Path:
    """Return where an empty file system has to be mounted, so that the folder can be created: the folder itself, or its
    nearest parent."""
    folder = folder.resolve()
    return next(each for each in (folder, *folder.parents) if each.is_dir())


def offer_faults(seen: Mapping[str, Any], found: Inventory) -> Iterator[str]:
    """Yield each fault of the plugin's devices and of its allocation, as text.

    :param seen: `report` is the output of the kubelet's stand-in, `described` are the CDI files of the plugin.
    """
    report = mapping(seen.get("report"))
    if report.get("resource") != ANY:
        yield f"the plugin registered {line(report.get('resource'), 80)!r}, not {ANY}"
    devices = {str(at(each, "ID")): at(each, "health") for each in items(report.get("devices"))}
    # Instances of a divided GPU have identifiers of their own, whatever the strategy.
    missing = [gpu.uuid for gpu in found.gpus if gpu.mig != "enabled" and gpu.uuid not in devices]
    if missing:
        yield f"the plugin does not offer {', '.join(missing)}"
    unhealthy = [name for name, health in devices.items() if health != HEALTHY]
    if unhealthy:
        yield f"the plugin reports as unhealthy: {line(', '.join(unhealthy), 400)}"
    allocated = line(report.get("allocated"), 80) or "no GPU"
    named = [line(at(each, "name"), 120) for each in items(at(report, "allocation", "cdi_devices"))]
    if not any(each.endswith(f"={allocated}") for each in named):
        yield f"the allocation of {allocated} has the devices {', '.join(named) or 'none'}"
    # The plugin has a kind of its own, so that its descriptions and those of the toolkit do not meet.
    described = {
        f"{at(file, 'kind')}={at(each, 'name')}"
        for file in items(seen.get("described"))
        for each in items(at(file, "devices"))
    }
    for each in named:
        if each not in described:
            yield f"no CDI description of the plugin has the device {each}"
