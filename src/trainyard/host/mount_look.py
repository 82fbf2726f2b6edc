"""Looks at a mount without ever waiting for its server."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..core.command import run
from ..core.errors import CommandError, TrainyardError
from .mounts import Entry, Mount, entries_of, mounted_at, other_places, read_ahead_path, users
from .units import newer_paths, properties_of

PROPERTIES = ("LoadState", "FragmentPath", "UnitFileState", "NeedDaemonReload", "ActiveEnterTimestampMonotonic")


@dataclass(frozen=True)
class Seen:
    """What there is.

    :param entry: what is mounted at the path.
    :param unit: text of our unit; None without one.
    :param retry: text of the service that mounts it again; None without one.
    :param properties: of the unit, as systemd names them.
    :param older: whether the unit's file has changed since it was mounted.
    :param inside: names in the folder, where nothing is mounted.
    :param users: who has the file system at another place.
    :param others: where else units of ours mount something.
    :param answers: whether the server of what is mounted answers.
    :param read_ahead_kb: None where nothing is mounted, or the kernel does not say.
    """

    entry: Entry | None = None
    unit: str | None = None
    retry: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    older: bool = False
    inside: Sequence[str] = ()
    folder: bool = True
    users: Sequence[str] = ()
    others: Sequence[str] = ()
    answers: bool = True
    read_ahead_kb: int | None = None


def observe(mount: Mount, *, removal: bool = False) -> Seen:
    """Read what there is.

    :param removal: a server that does not answer is no error.
    :raises TrainyardError: the server of what is mounted did not answer in time.
    """
    entry = entry_at(mount.path)
    properties = properties_of(mount.unit, PROPERTIES)
    seen = Seen(entry, _read(mount.unit_path), _read(mount.retry_path), properties, others=other_places(mount))
    if entry is None:
        return replace(seen, inside=entries_of(mount.path), folder=os.path.isdir(mount.path))
    try:
        probe(mount)
    except TrainyardError:
        if not removal:
            raise
        seen = replace(seen, answers=False)
    started = int(properties.get("ActiveEnterTimestampMonotonic") or 0) / 1e6
    ahead = _read(read_ahead_path(entry.device))
    return replace(
        seen,
        older=bool(newer_paths([mount.unit_path], started)),
        users=users(entry),
        read_ahead_kb=int(ahead) if ahead else None,
    )


def probe(mount: Mount) -> None:
    """Ask the mounted file system for its size, which only its server knows.

    In a program of its own: a process that asks a server that is gone waits for ever.

    :raises TrainyardError: there was no answer in time.
    """
    try:
        run(["stat", "--file-system", mount.path], timeout=mount.probe_timeout)
    except CommandError as error:
        raise TrainyardError(
            f"{mount.path} does not answer within {mount.probe_timeout} s: {error.message}",
            remedy=f"Look whether the server of {mount.source} runs and this host can reach it; what waits for it "
            "goes on by itself when it is back.",
        ) from error


def entry_at(path: str) -> Entry | None:
    """What is mounted at a path on this host."""
    return mounted_at(path, _read("/proc/self/mountinfo") or "")


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except FileNotFoundError:
        return None
