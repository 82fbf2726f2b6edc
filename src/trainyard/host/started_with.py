"""What a unit was started with: digests of the files that it read, kept for as long as this start of it lasts.

Times cannot say whether a process is older than its file once the clock has been set. So each start of ours records
what it read, under systemd's name of that start (InvocationID, systemd.exec(5)), which is another one after each start
by anybody. The records are in /run: they go with the boot, and so do the processes.
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
    """The existing paths that glob patterns find; a link to nothing is none."""
    return sorted({path for pattern in patterns for path in glob.glob(pattern) if os.path.exists(path)})


def snapshot(patterns: Iterable[str]) -> dict[str, list[Any]]:
    """Path -> signature and digest of each file that is there now."""
    found = {}
    for path in paths_of(patterns):
        # The signature first: a file that changes in between is then looked into again.
        signature = _signature(path)
        found[path] = [signature, _digest(path)]
    return found


def remember(unit: str, invocation: str, files: dict[str, list[Any]]) -> None:
    """Record what a start has read; where that cannot be written, times decide as they do of any other start.

    :param invocation: systemd's name of that start; without one nothing is recorded.
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
    """What this start of a unit has read, by path; empty where it is not one of ours."""
    try:
        with open(_record(unit), encoding="utf-8") as stream:
            record = json.load(stream)
        if not invocation or record["invocation"] != invocation:
            return {}
        return {path: [list(signature), str(digest)] for path, (signature, digest) in record["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def changed(paths: Sequence[str], files: dict[str, list[Any]]) -> list[str]:
    """The recorded paths whose content is another one now.

    :param paths: existing paths; those that are not recorded are passed over.
    :param files: as `known` gives them.
    """
    return [
        path
        for path in paths
        if path in files and files[path][0] != _signature(path) and files[path][1] != _digest(path)
    ]


def _record(unit: str) -> str:
    return os.path.join(FOLDER, f"{unit}.json")


def _signature(path: str) -> list[int]:
    """What changes with the content of a file, so that most files need not be read."""
    seen = os.stat(path)
    return [seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns]


def _digest(path: str) -> str:
    """SHA-256 of a file's content; of a folder, of the names in it."""
    total = hashlib.sha256()
    if os.path.isdir(path):
        total.update("\0".join(sorted(os.listdir(path))).encode(errors="surrogateescape"))
        return total.hexdigest()
    with open(path, "rb") as stream:
        while chunk := stream.read(CHUNK):
            total.update(chunk)
    return total.hexdigest()
