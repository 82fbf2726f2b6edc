"""Rules for the data source of a training: one source, a folder, a path in the pods, an archive with its digest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from .description_checks import OWN_MOUNTS, Fault, fault
from .model import DATA_MOUNT

_TAKEN_MOUNTS = tuple(mount for mount in OWN_MOUNTS if mount != DATA_MOUNT)


def data_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the faults of a training's data source."""
    if data and bool(data.get("image")) == bool(data.get("claim")):
        yield Fault("data", "has no source, or several", "image, claim or import is needed")
    mount = PurePosixPath(data.get("mount") or DATA_MOUNT)
    if not mount.is_absolute() or ".." in mount.parts or str(mount) == "/" or str(mount) in _TAKEN_MOUNTS:
        want = f"it must be an absolute path, and none of {', '.join(_TAKEN_MOUNTS)}"
        yield fault("data.mount", data["mount"], want)
    folder = PurePosixPath(data.get("folder") or "x")
    if folder.is_absolute() or ".." in folder.parts:
        yield fault("data.folder", data["folder"], "it must be a folder of the claim")
    url = data.get("url")
    # `runtime` is set only for an import.
    imported = bool(url or data.get("runtime"))
    if imported and not url:
        want = "an import needs the http or https address of an archive, in addition to its sha256 and a folder"
        yield fault("data.url", None, want)
    if url and not re.fullmatch(r"https?://[^/\s]+/\S*", url):
        yield fault("data.url", url, "it must be the http or https address of an archive; this site serves no archives")
    if imported and not re.fullmatch(r"[0-9a-fA-F]{64}", data.get("sha256") or ""):
        yield fault(
            "data.sha256", data.get("sha256"), "an import needs the SHA-256 of the archive, 64 hexadecimal digits"
        )
    if imported and not data.get("folder"):
        yield fault("data.folder", None, "an import needs a folder of its own on the claim")
