"""Progress watchdog: ends a process that makes no progress.

When a parameter server dies, TensorFlow's coordinator waits for it for ever without an exception, so nothing inside the
training loop can notice. A separate thread can, as long as TensorFlow releases the interpreter lock while it waits. If
it does not, no Python thread and no signal handler runs any more; then a timer outside the interpreter ends the
process.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from engine.errors import ExitCode

_TICKS = 20
"""Checks per limit: the process ends at most 5 % late."""
_REPORT_SECONDS = 5.0
"""Time for the report; together with the 20 s after SIGTERM it is less than the 30 s that Kubernetes grants."""
_TIMER_SECONDS = _REPORT_SECONDS + 3.0
"""Time by which the timer exceeds the limit: enough for the watchdog to end the process itself, if it can."""


class Watchdog(threading.Thread):
    """A thread that calls `on_stall` and ends the process if no `beat` came for `limit` seconds, or at the deadline.

    If the interpreter itself is blocked, `faulthandler`'s timer ends the process a little later, with 1 and the stacks
    of all threads on standard error. A process has only one such timer.

    :param limit: seconds without a beat.
    :param on_stall: receives the known state as JSON-serialisable fields; called once, must not block for ever.
    :param leave: ends the process; tests replace it.
    """

    def __init__(
        self,
        limit: float,
        on_stall: Callable[[dict[str, Any]], None],
        leave: Callable[[int], object] = os._exit,
    ) -> None:
        super().__init__(name="watchdog", daemon=True)
        self._limit = limit
        self._on_stall = on_stall
        self._leave = leave
        self._changed = threading.Event()
        self._stopped = False
        self._deadline = float("inf")
        # No lock: each attribute is replaced atomically, and one beat more or less does not matter.
        self._beaten = time.monotonic()
        self._activity = "start"
        self._step: int | None = None

    def beat(self, activity: str, step: int | None = None) -> None:
        """Record progress; `activity` is the next activity of the process."""
        self._activity = activity
        if step is not None:
            self._step = step
        self._beaten = time.monotonic()

    def shorten(self, limit: float) -> None:
        """End the process in `limit` seconds, regardless of its progress (after SIGTERM it has little time)."""
        self._deadline = min(self._deadline, time.monotonic() + limit)
        self._changed.set()

    def stop(self) -> None:
        self._stopped = True
        self._changed.set()

    def run(self) -> None:
        try:
            self._watch()
        finally:
            faulthandler.cancel_dump_traceback_later()

    def _watch(self) -> None:
        while not self._stopped:
            now = time.monotonic()
            # The timer is reset at each check, not at each beat: it detects that no Python thread runs any more.
            faulthandler.dump_traceback_later(
                max(0.0, min(self._limit, self._deadline - now)) + _TIMER_SECONDS, exit=True
            )
            if now > self._deadline or now - self._beaten > self._limit:
                self._end(
                    {
                        "stalled_seconds": round(now - self._beaten, 1),
                        "limit_seconds": self._limit,
                        "activity": self._activity,
                        "step": self._step,
                    }
                )
                return
            self._changed.wait(min(self._limit / _TICKS, max(self._deadline - now, 0.01)))
            self._changed.clear()

    def _end(self, known: dict[str, Any]) -> None:
        report = threading.Thread(target=self._report, args=(known,), daemon=True)
        report.start()
        # The report itself may hang (on a full volume, on a name server); it must not keep the process alive.
        report.join(_REPORT_SECONDS)
        self._leave(int(ExitCode.STALLED))

    def _report(self, known: dict[str, Any]) -> None:
        try:
            faulthandler.dump_traceback(sys.stderr, all_threads=True)
        finally:
            self._on_stall(known)
