"""Read the GPUs of this host: NVML first, then `nvidia-smi`, and the host's own records.

The records are those of its NVIDIA driver: the loaded module, the library on the disk, the kernel log.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

from ..core.command import run
from ..core.errors import CommandError, TrainyardError
from ..core.untrusted import whole
from ..host.nvidia import gpus_on_bus, module_on_disk
from . import nvml, smi
from .gpu_model import Inventory

ROOT = Path("/")
LIBRARY = "libnvidia-ml.so.1"
FOLDERS = ("usr/lib/x86_64-linux-gnu", "usr/lib64", "usr/lib")
"""Debian and Ubuntu, Red Hat, others."""
DPKG_TIMEOUT = 20
JOURNAL = ("journalctl", "--boot", "--identifier=kernel", "--grep=NVRM: Xid", "--output=json", "--no-pager", "--quiet")
XID = re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F:]+)(?:\.\d)?\): (\d+)")
"""https://docs.nvidia.com/deploy/xid-errors"""
VERSION = re.compile(r"Kernel Module(?: for \S+)?\s+(\d[\d.]+)")
"""Matches both forms of `/proc/driver/nvidia/version`: proprietary and open module."""


def module_version() -> str | None:
    """Return the version of the loaded kernel module; None if none is loaded or the kernel does not report it."""
    for name, pattern in (("sys/module/nvidia/version", re.compile(r"(\S+)")), ("proc/driver/nvidia/version", VERSION)):
        try:
            found = pattern.search((ROOT / name).read_text(encoding="utf-8"))
        except OSError:
            continue
        if found:
            return found[1]
    return None


def on_bus() -> int | None:
    """Return the number of GPUs on the PCI bus. None if PCI shows none, which does not prove that the host has none."""
    return len(gpus_on_bus(ROOT)) or None


def library_version() -> str | None:
    """Return the version of the installed library, which is the suffix of its file name."""
    version = path.name.partition(".so.")[2] if (path := _library()) else ""
    return version if "." in version else None


def package_version() -> str | None:
    """Return the version of the dpkg package that owns the library; None if no package owns it."""
    path = _library()
    if path is None:
        return None
    try:
        # Example: `libnvidia-ml1:amd64: /usr/lib/...`.
        owner = run(["dpkg-query", "--search", str(path)], timeout=DPKG_TIMEOUT).stdout.rpartition(": ")[0]
        shown = ["dpkg-query", "--show", "--showformat=${source:Upstream-Version}", owner]
        return run(shown, timeout=DPKG_TIMEOUT).stdout.strip() or None
    except CommandError:
        return None


def _library() -> Path | None:
    paths = (ROOT / folder / LIBRARY for folder in FOLDERS)
    return next((path.resolve() for path in paths if path.is_file()), None)


def xids(journal: str) -> list[tuple[str, int]]:
    """Return the logged faults in order, as pairs of PCI bus address and XID.

    :param journal: output of `JOURNAL`. Entries that a user logged under the kernel's name are ignored.
    """
    found = []
    for line in journal.splitlines():
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(entry, dict):
            continue
        trusted = entry.get("_TRANSPORT") == "kernel" or entry.get("_UID") == "0"
        message = entry.get("MESSAGE")
        match = XID.search(message if isinstance(message, str) else "")
        if trusted and match and (code := whole(match[2])) is not None:
            found.append((match[1], code))
    return found


TIMEOUT = 60
"""Seconds for nvidia-smi; without the persistence daemon, a host with eight GPUs takes 20."""
JOURNAL_TIMEOUT = 30
"""Seconds to search the log since boot."""
NOTHING_FOUND = 1
"""Exit status of journalctl if no line matches."""


def look(binding: Path | None) -> Inventory:
    """Return the GPUs of this host.

    :param binding: file of NVIDIA's binding `pynvml`; without it, only `nvidia-smi` is queried.
    """
    inventory = nvml.read(nvml.load(binding)) if binding else Inventory("none", error="pynvml is not available")
    # nvidia-smi uses the same library, so it does not help if the library does not match the module.
    if inventory.source == "none" and not inventory.mismatch:
        inventory = _ask_program(inventory)
    inventory = replace(
        inventory,
        on_bus=on_bus(),
        next_module_version=module_on_disk() or None,
        package_version=package_version(),
    )
    return inventory.with_versions(module_version(), library_version()).with_xids(_xids())


def _ask_program(before: Inventory) -> Inventory:
    try:
        text = run(smi.QUERY, timeout=TIMEOUT).stdout
    except CommandError as error:
        mismatch = "version mismatch" in str(error)
        return replace(before, mismatch=mismatch, error=f"NVML: {before.error}; nvidia-smi: {error}")
    try:
        capabilities = run(smi.CAPABILITIES, timeout=TIMEOUT).stdout
    except CommandError:
        # nvidia-smi of old drivers does not support this query.
        capabilities = ""
    try:
        return smi.read(text, capabilities)
    except TrainyardError as error:
        return replace(before, error=f"NVML: {before.error}; {error}")


def _xids() -> list[tuple[str, int]]:
    try:
        return xids(run(JOURNAL, timeout=JOURNAL_TIMEOUT, ok=(0, NOTHING_FOUND)).stdout)
    except CommandError:
        # A host without a systemd journal. The health of a GPU does not depend on logged faults.
        return []
