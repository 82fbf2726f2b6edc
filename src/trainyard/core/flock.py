"""File locks that serialize concurrent runs. The kernel releases a lock when its process ends."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from .waiter import wait_until


@contextmanager
def locked(path: Path, *, what: str, timeout: float, waiting: Callable[[], object] = bool) -> Iterator[TextIO]:
    """Hold the lock of a file while the block runs. The file is created and not removed.

    :param what: the awaited condition, for the error ("another run of the bundle to finish").
    :param timeout: limit in seconds.
    :param waiting: called once if another process holds the lock.
    :raises WaitError: another process held the lock for longer.
    """
    with path.open("w") as stream:
        if not take(stream):
            waiting()
            wait_until(lambda: take(stream), bool, what=what, timeout=timeout, interval=0.2)
        yield stream


def take(file: TextIO | int, *, wait: bool = False) -> bool:
    """Take the lock of an open file, and return whether this process has it.

    :param file: a stream or a descriptor. The lock ends when all copies of the descriptor are closed.
    :param wait: wait without a limit until it is free; for locks that others hold for a moment only.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True
