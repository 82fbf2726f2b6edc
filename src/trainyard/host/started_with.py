"""Record the files that a unit read at its start, as digests that are valid for this start.

After the clock was set, times do not show whether a process is older than its file. So each start by this project
records its input files under systemd's InvocationID (systemd.exec(5)), which changes with each start by anyone. The
records are in /run, so that a reboot removes them.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from typing import Any

from ..core.errors import TrainyardError
from ..core.files import write

FOLDER = "/run/trainyard/units"
CHUNK = 1 << 20


def paths_of(patterns: Iterable[str]) -> list[str]:
    """Return the existing paths that match glob patterns, without broken links."""
    return sorted({path for pattern in patterns for path in glob.glob(pattern) if os.path.exists(path)})


def snapshot(patterns: Iterable[str]) -> dict[str, list[Any]]:
    """Return path -> signature and digest of each existing file."""
    found = {}
    for path in paths_of(patterns):
        # The signature comes first, so that a file that changes in between is compared again later.
        signature = _signature(path)
        found[path] = [signature, _digest(path)]
    return found


def remember(unit: str, invocation: str, files: dict[str, list[Any]]) -> None:
    """Record the files that a start has read. If that fails, times decide later, as for any other start.

    :param invocation: systemd's InvocationID of the start; if empty, nothing is recorded.
    :param files: a snapshot from before the start.
    """
    if not invocation:
        return
    try:
        write(_record(unit), json.dumps({"invocation": invocation, "files": files}), 0o600)
    except TrainyardError:
        forget(unit)


def forget(unit: str) -> None:
    """Remove the record of a unit."""
    try:
        os.unlink(_record(unit))
    except OSError:
        return


def known(unit: str, invocation: str) -> dict[str, list[Any]]:
    """Return the recorded files of this start of a unit, by path; empty if this project did not start it."""
    try:
        with open(_record(unit), encoding="utf-8") as stream:
            record = json.load(stream)
        if not invocation or record["invocation"] != invocation:
            return {}
        return {path: [list(signature), str(digest)] for path, (signature, digest) in record["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def changed(paths: Sequence[str], files: dict[str, list[Any]]) -> list[str]:
    """Return the recorded paths whose content has changed.

    :param paths: existing paths; unrecorded ones are skipped.
    :param files: the result of `known`.
    """
    return [
        path
        for path in paths
        if path in files and files[path][0] != _signature(path) and files[path][1] != _digest(path)
    ]


def _record(unit: str) -> str:
    return os.path.join(FOLDER, f"{unit}.json")


def _signature(path: str) -> list[int]:
    """Return metadata that changes with a file's content, so that most files need not be read."""
    seen = os.stat(path)
    return [seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns]


def _digest(path: str) -> str:
    """Return the SHA-256 of a file's content, or of the names in a folder."""
    total = hashlib.sha256()
    if os.path.isdir(path):
        total.update("\0".join(sorted(os.listdir(path))).encode(errors="surrogateescape"))
        return total.hexdigest()
    with open(path, "rb") as stream:
        while chunk := stream.read(CHUNK):
            total.update(chunk)
    return total.hexdigest()
