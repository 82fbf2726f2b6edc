"""The host's own records of its NVIDIA driver: the loaded module, the library on the disk, the kernel log."""

from __future__ import annotations

import json
import re
from pathlib import Path

from ..core.command import run
from ..core.errors import CommandError
from ..core.untrusted import whole
from ..host.nvidia import gpus_on_bus

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
