"""Progress watchdog: ends a process that makes none.

When a parameter server dies, TensorFlow's coordinator waits for it for ever without an exception, so nothing inside the
training loop can notice. A thread of its own can, because TensorFlow releases the interpreter lock while it waits.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from lib.errors import ExitCode

_TICKS = 20
"""Looks per limit: the process ends at most 5 % late; and at least one a second, so that a shortened limit is seen."""


class Watchdog(threading.Thread):
    """Calls `on_stall` and ends the process when no `beat` came for `limit` seconds.

    :param limit: seconds without a beat.
    :param on_stall: gets what is known as JSON-serialisable fields; called once, must not block for ever.
    :param leave: ends the process; a test passes its own.
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
        self._stopped = threading.Event()
        # No lock: each attribute is replaced whole, and one beat more or less does not matter.
        self._beaten = time.monotonic()
        self._activity = "start"
        self._step: int | None = None

    def beat(self, activity: str, step: int | None = None) -> None:
        """Progress was made; `activity` is what the process does from now on."""
        self._activity = activity
        if step is not None:
            self._step = step
        self._beaten = time.monotonic()

    def shorten(self, limit: float) -> None:
        """Allow at most `limit` seconds from now on (the grace period after SIGTERM is short)."""
        self._beaten = time.monotonic()
        self._limit = min(self._limit, limit)

    def stop(self) -> None:
        self._stopped.set()

    def run(self) -> None:
        while not self._stopped.wait(min(self._limit / _TICKS, 1.0)):
            silent = time.monotonic() - self._beaten
            if silent > self._limit:
                self._end(
                    {
                        "stalled_seconds": round(silent, 1),
                        "limit_seconds": self._limit,
                        "activity": self._activity,
                        "step": self._step,
                    }
                )
                return

    def _end(self, known: dict[str, Any]) -> None:
        report = threading.Thread(target=self._report, args=(known,), daemon=True)
        report.start()
        # The report may itself meet what hangs (a full volume, a name server): it does not get to keep the process.
        report.join(timeout=15.0)
        self._leave(int(ExitCode.STALLED))

    def _report(self, known: dict[str, Any]) -> None:
        try:
            faulthandler.dump_traceback(sys.stderr, all_threads=True)
        finally:
            self._on_stall(known)
