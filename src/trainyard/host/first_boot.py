"""Wait until a host that has just started can be changed: cloud-init has finished, and no other program uses dpkg.

While another dpkg works, its records look like those of an interrupted one. So the wait comes before they are read.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterator
from pathlib import Path

from ..core.waiter import CLOCK, Clock
from .facts import text_of
from .preflight_checks import Reason, reason

CLOUD_INIT = "run/cloud-init/enabled"
"""File of a boot for which cloud-init runs (cloud-init's generator)."""
CLOUD_INIT_DONE = "run/cloud-init/result.json"
"""File that cloud-init writes at the end of its last stage, in each boot."""

LOCKS = ("var/lib/dpkg/lock-frontend", "var/lib/dpkg/lock")
"""Locks of apt and of dpkg (fcntl(2)), in the order in which they are taken."""
FLOCK = "hhqqi4x"
"""`struct flock` of Linux on 64 bits: type, whence, start, length, process."""

INTERVAL = 2.0
"""Seconds between two looks."""


def busy(root: Path = Path("/"), waited: float = 0.0) -> Reason | None:
    """Return what still prepares the host or uses its packages; None if nothing does.

    :param waited: seconds since the first look, for the message.
    """
    if (root / CLOUD_INIT).exists() and not (root / CLOUD_INIT_DONE).exists():
        return reason("first_boot", waited=round(waited))
    for name, process in _holders(root):
        program = text_of(root / "proc" / str(process) / "comm").strip() or "a program"
        return reason("packages_busy", program=program, process=process, lock=f"/{name}", waited=round(waited))
    return None


def _holders(root: Path) -> Iterator[tuple[str, int]]:
    """Yield each lock that a process holds, with the process; asking takes no lock."""
    for name in LOCKS:
        try:
            descriptor = os.open(root / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        finally:
            os.close(descriptor)
        kind, _, _, _, process = struct.unpack(FLOCK, answer)
        if kind != fcntl.F_UNLCK:
            yield name, process


def wait(timeout: float, root: Path = Path("/"), clock: Clock = CLOCK) -> Reason | None:
    """Wait until nothing prepares the host or uses its packages.

    :param timeout: seconds.
    :returns: the reason for which the limit was reached, or None.
    """
    begin = clock.monotonic()
    while found := busy(root, clock.monotonic() - begin):
        if clock.monotonic() - begin >= timeout:
            return found
        clock.sleep(INTERVAL)
    return None


def require_idle(timeout: float) -> None:
    """Wait as `wait` does.

    :raises TrainyardError: the limit was reached.
    """
    if found := wait(timeout):
        raise found.as_error()
