"""Guessing tokens is made slow: for each address, and in total."""

from __future__ import annotations

from collections import OrderedDict, deque

from ansible.module_utils.trainyard.core.clock import CLOCK, Clock

FREE = 5
"""Failures of one address that cost nothing."""
LONGEST = 60.0
FORGET = 900.0
ADDRESSES = 10_000
TOTAL, WINDOW = 100, 60.0
"""Failures of all addresses together within so many seconds; beyond them, every login waits."""
TOTAL_PAUSE = 2.0


class Throttle:
    """Failed logins by address; times in seconds."""

    def __init__(self, clock: Clock = CLOCK) -> None:
        self._clock = clock
        self._failed: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._all: deque[float] = deque(maxlen=TOTAL)

    def refused_for(self, address: str) -> float:
        """How long this address has to wait before its next attempt is looked at; 0 for not at all."""
        count, last = self._failed.get(address, (0, 0.0))
        if count < FREE:
            return 0.0
        if self._clock.monotonic() - last >= FORGET:
            del self._failed[address]
            return 0.0
        pause = min(LONGEST, 2.0 ** min(count - FREE, 10))
        return max(0.0, last + pause - self._clock.monotonic())

    def pause(self) -> float:
        """How long any login waits for the many that fail: nobody is locked out, and guessing stays slow."""
        full = len(self._all) == TOTAL and self._clock.monotonic() - self._all[0] < WINDOW
        return TOTAL_PAUSE if full else 0.0

    def failed(self, address: str) -> None:
        count, _ = self._failed.pop(address, (0, 0.0))
        self._failed[address] = count + 1, self._clock.monotonic()
        self._all.append(self._clock.monotonic())
        while len(self._failed) > ADDRESSES:
            self._failed.popitem(last=False)

    def succeeded(self, address: str) -> None:
        self._failed.pop(address, None)
