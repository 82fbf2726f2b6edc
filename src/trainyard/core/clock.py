"""The time as everything that waits sees it; a test puts in a clock that goes on by itself."""

from __future__ import annotations

import time


class Clock:
    """The machine's clock."""

    def monotonic(self) -> float:
        """Seconds that only go forward, from an unknown beginning."""
        return time.monotonic()

    def time(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


CLOCK = Clock()
