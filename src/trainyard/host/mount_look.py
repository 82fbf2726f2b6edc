"""Read the state of a mount without blocking on its server."""

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
    """The observed state of a mount.

    :param entry: the mount at the path; None if nothing is mounted.
    :param unit: text of our unit; None without one.
    :param retry: text of the service that retries the mount; None without one.
    :param properties: properties of the unit, by systemd's names.
    :param older: whether the unit's file has changed since the mount.
    :param inside: names in the folder, if nothing is mounted.
    :param users: processes that use the file system at another path.
    :param others: other paths at which our units mount something.
    :param answers: whether the server of the mount answers.
    :param read_ahead_kb: read-ahead in KiB; None if nothing is mounted, or the kernel does not report it.
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
    """Read the state of a mount.

    :param removal: do not fail if the server does not answer.
    :raises TrainyardError: the server of the mount did not answer in time.
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
    """Query the size of the mounted file system, which only its server knows.

    The query runs in a separate program, because a process blocks for ever if the server is gone.

    :raises TrainyardError: there was no answer in time.
    """
    try:
        run(["stat", "--file-system", mount.path], timeout=mount.probe_timeout)
    except CommandError as error:
        raise TrainyardError(
            f"{mount.path} does not answer within {mount.probe_timeout} s: {error.message}",
            remedy=f"Check that the server of {mount.source} runs and that this host can reach it. Blocked processes "
            "continue by themselves when it is back.",
        ) from error


def entry_at(path: str) -> Entry | None:
    """Return the mount at a path on this host, or None."""
    return mounted_at(path, _read("/proc/self/mountinfo") or "")


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except FileNotFoundError:
        return None
