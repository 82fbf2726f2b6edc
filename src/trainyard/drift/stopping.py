"""The reasons to end a run early: a stop signal from a terminal or from systemd, and the deadline.

After a stop signal the running playbook ends, and nothing begins after it. ansible-runner 2.4.3 would handle both
signals itself, and forget them when the running playbook ends.

The start of the unit sets the deadline of a run. The remaining time bounds each step.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, current_thread, main_thread
from types import FrameType

from ..core.errors import TrainyardError
from ..core.untrusted import number
from ..core.waiter import CLOCK, Clock

SIGNALS = (signal.SIGTERM, signal.SIGINT)
WORDS = "it received a stop signal"

_requested = Event()


def requested() -> bool:
    """Return whether this process has received a stop signal since the block of `listening` began."""
    return _requested.is_set()


@contextmanager
def listening() -> Iterator[None]:
    """Record the first stop signal while the block runs. A second signal reaches the previous handler."""
    if current_thread() is not main_thread():
        # Python delivers signals only to the main thread.
        yield
        return
    before = {each: signal.getsignal(each) for each in SIGNALS}

    def note(received: int, frame: FrameType | None) -> None:
        _requested.set()
        signal.signal(received, before[signal.Signals(received)])

    for each in SIGNALS:
        signal.signal(each, note)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        _requested.clear()


VARIABLE = "TRAINYARD_DEADLINE"
"""Environment variable: the deadline in seconds of the machine's monotonic clock, which all its processes share."""

CLOSING_SECONDS = 240.0
"""Time after the deadline to end a playbook, write the report and call the hooks. The unit has 300 (service.j2)."""


class OutOfTimeError(TrainyardError):
    """A step would begin after the deadline."""


@dataclass(frozen=True)
class Deadline:
    """A moment of the monotonic clock.

    :param ends: in seconds of `clock`.
    """

    ends: float
    clock: Clock = CLOCK

    @property
    def left(self) -> float:
        """Return the seconds until the deadline; negative after it."""
        return self.ends - self.clock.monotonic()

    @property
    def closing(self) -> float:
        """Return the seconds that are left to close the run."""
        return self.left + CLOSING_SECONDS

    def bound(self, most: float) -> float:
        """Return the limit of a step in seconds: its own, or the remaining time if that is less.

        :raises OutOfTimeError: no time is left.
        """
        left = self.left
        if left <= 0:
            raise OutOfTimeError("The time of this run is up.", remedy="Set reprovision_timeout to more seconds.")
        return min(most, left)


def deadline(seconds: float, clock: Clock = CLOCK, environ: Mapping[str, str] = os.environ) -> Deadline:
    """Return the deadline of a run that begins now, or an earlier one that the unit's start has set.

    :param seconds: limit of the run.
    """
    ends = clock.monotonic() + seconds
    given = number(environ.get(VARIABLE))
    return Deadline(ends if given is None else min(ends, given), clock)
