"""The lock of a site on one machine: `flock`. The kernel releases it when its holder ends, also by a kill."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from ..core.errors import TrainyardError, WaitError
from ..core.flock import take
from ..core.waiter import CLOCK, Clock, wait_until
from . import holder as holders
from .holder import Busy, Holder

LAST_WORDS_SECONDS = 10.0
"""Wait for the lock of an ended run, whose lease is being released."""


class Held:
    """A lock that this process holds until it calls `release`, or ends."""

    def __init__(self, holder: Holder, path: Path, stream: TextIO) -> None:
        self.holder = holder
        self.path = path
        self._stream = stream

    def note(self, **changes: Any) -> None:
        """Change fields of the holder in the lock file, which all users may read."""
        self.holder = replace(self.holder, **changes)
        _write(self._stream, self.holder.as_json())

    def release(self) -> None:
        """Release the lock. A second call does nothing."""
        if not self._stream.closed:
            _write(self._stream, "")
            self._stream.close()

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def folder() -> Path:
    """Return the folder of this user's locks: in /run/lock, which all users may write on Debian, else the session's.

    Users do not share a lock, because a user could remove the lock of another. The lease excludes their runs.
    """
    user = os.geteuid()
    if user == 0:
        return Path("/run/lock/trainyard")
    places = ("/run/lock", os.environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{user}")
    return Path(next((place for place in places if place and os.access(place, os.W_OK)), "/tmp"), f"trainyard-{user}")  # noqa: S108 - its owner is checked


def path_of(site: str, where: Path | None = None) -> Path:
    """Return the path of a site's lock.

    :param site: folder of the site's files on this machine (`site_dir`), which identifies the site.
    """
    real = os.path.realpath(os.path.expanduser(site))
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", os.path.basename(real)) or "site"
    return (where or folder()) / f"{name}-{hashlib.sha256(real.encode()).hexdigest()[:8]}.lock"


def acquire(
    site: str,
    verb: str,
    run_id: str,
    *,
    revision: str = "",
    pid: int = 0,
    where: Path | None = None,
    clock: Clock = CLOCK,
) -> Held:
    """Take the lock of a site for a run.

    :param site: as for `path_of`.
    :param pid: process of the run, if this process holds the lock for it; 0 for this process.
    :raises Busy: a running run has it.
    """
    path = path_of(site, where)
    stream = _open(path)
    try:
        if not take(stream):
            _wait_for_last_words(path, stream, clock)
        left = holders.parse(_read(stream))
        if left and left.alive and left.pid != (pid or os.getpid()):
            # Only the keeper of that run was killed. The run continues and keeps its lock.
            raise _busy(left, path)
        there = os.fstat(stream.fileno())
        me = holders.here(verb, run_id, clock.time(), revision=revision, pid=pid)
        held = Held(replace(me, place=f"{there.st_dev}:{there.st_ino}"), path, stream)
        held.note()
    except BaseException:
        stream.close()
        raise
    return held


def holder(site: str, where: Path | None = None) -> Holder | None:
    """Return the running run that holds a site on this machine; None without one.

    Only its process is checked. Trying the lock itself would refuse a run that starts at that moment.
    """
    try:
        found = holders.parse(path_of(site, where).read_text(encoding="utf-8"))
    except OSError:
        return None
    return found if found and found.alive else None


def _wait_for_last_words(path: Path, stream: TextIO, clock: Clock) -> None:
    """Wait for a lock whose run has ended, or has just begun and has not written its holder yet.

    :raises Busy: a running run has it.
    """

    def free() -> bool:
        if take(stream):
            return True
        other = holders.parse(_read(stream))
        if other and other.alive:
            raise _busy(other, path)
        return False

    try:
        wait_until(free, bool, what="the lock", timeout=LAST_WORDS_SECONDS, interval=0.1, clock=clock)
    except WaitError:
        raise Busy(f"{path} is locked by an unknown process.", None) from None


def _busy(other: Holder, path: Path) -> Busy:
    return Busy(f"The site is being changed: {other} ({path}).", other)


def _open(path: Path) -> TextIO:
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        # Follow no link: in /run/lock another user could create one to a folder of root.
        there = path.parent.lstat()
        if there.st_uid != os.geteuid() or not stat.S_ISDIR(there.st_mode):
            raise TrainyardError(
                f"{path.parent} is a link, or belongs to another user, who could remove the lock.",
                remedy="Remove it.",
            )
        # Not "w", because a refused run must not empty the file.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        return os.fdopen(descriptor, "r+", encoding="utf-8")
    except OSError as error:
        raise TrainyardError(f"The lock {path} cannot be opened: {error.strerror}.") from error


def _read(stream: TextIO) -> str:
    stream.seek(0)
    return stream.read()


def _write(stream: TextIO, text: str) -> None:
    # In place, because a new file would be another lock. A reader of an incomplete text sees no holder, and retries.
    stream.seek(0)
    stream.truncate()
    stream.write(text)
    stream.flush()
