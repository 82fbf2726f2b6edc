"""Being told to stop, by a terminal or by systemd: the playbook at work ends, and nothing is begun after it.

ansible-runner 2.4.3 would take both signals for itself and forget them with the playbook that was at work.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, current_thread, main_thread
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT)
WORDS = "it was told to stop"

_told = Event()


def told() -> bool:
    """Whether this process has been told to stop since the block of `listening` began."""
    return _told.is_set()


@contextmanager
def listening() -> Iterator[None]:
    """Note the first of the signals while the block runs, no longer; a second one does what it did before."""
    if current_thread() is not main_thread():
        # Python hands signals to no other thread.
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def note(number: int, frame: FrameType | None) -> None:
        _told.set()
        signal.signal(number, before[signal.Signals(number)])

    for number in SIGNALS:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _told.clear()
