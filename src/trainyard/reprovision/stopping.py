"""Stop signals from a terminal or from systemd: the running playbook ends, and nothing begins after it.

ansible-runner 2.4.3 would handle both signals itself, and forget them when the running playbook ends.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, current_thread, main_thread
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT)
WORDS = "it received a stop signal"

_told = Event()


def told() -> bool:
    """Return whether this process has received a stop signal since the block of `listening` began."""
    return _told.is_set()


@contextmanager
def listening() -> Iterator[None]:
    """Record the first stop signal while the block runs. A second signal reaches the previous handler."""
    if current_thread() is not main_thread():
        # Python delivers signals only to the main thread.
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
