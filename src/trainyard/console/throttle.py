"""Slow down guessing of tokens without affecting other users: only answers to wrong tokens are delayed."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext

from ..core.waiter import CLOCK, Clock
from .connections import is_shared
from .shares import OfEach

FREE = 5
"""Failures of one address without a delay."""
LONGEST = 10.0
FORGET = 900.0
ADDRESSES = 10_000
TOTAL, WINDOW = 100, 60.0
"""Maximum failures of all addresses within WINDOW seconds; beyond that, each failure is delayed."""
TOTAL_PAUSE = 2.0
AT_ONCE, OF_ADDRESS = 8, 2
"""Concurrent token reviews: in total, and of one address that is not shared."""
HELD_SECONDS = 0.25
"""Time for which a wrong token keeps its turn, which limits the API server to 32 reviews of wrong tokens a second."""


class Throttle:
    """Failed logins by address; times in seconds.

    :param sleep: `asyncio.sleep` or a substitute.
    """

    def __init__(self, clock: Clock = CLOCK, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._clock, self._sleep = clock, sleep
        self._failed: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._all: deque[float] = deque(maxlen=TOTAL)
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._of_address = OfEach(OF_ADDRESS)
        self._held: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[Callable[[], None]]:
        """Hold a turn for the review of a token. Call the yielded function if the token is valid.

        Any other end of the block keeps the turn for a moment, also if the client disconnects.
        """
        async with nullcontext() if is_shared(address) else self._of_address.taken(address):
            await self._turns.acquire()
            right: list[bool] = []
            try:
                yield lambda: right.append(True)
            finally:
                if right:
                    self._turns.release()
                else:
                    task = asyncio.ensure_future(self._give_back_later())
                    self._held.add(task)
                    task.add_done_callback(self._held.discard)

    async def _give_back_later(self) -> None:
        try:
            await self._sleep(HELD_SECONDS)
        finally:
            self._turns.release()

    async def failed(self, address: str) -> None:
        """Count a failure and delay its answer; each further failure of an unshared address waits longer."""
        await self._sleep(self._count(address))

    def succeeded(self, address: str) -> None:
        self._failed.pop(address, None)

    def _count(self, address: str) -> float:
        """Count a failure and return the seconds to delay its answer."""
        now = self._clock.monotonic()
        full = len(self._all) == TOTAL and now - self._all[0] < WINDOW
        self._all.append(now)
        pause = TOTAL_PAUSE if full else 0.0
        if is_shared(address):
            return pause
        count, last = self._failed.pop(address, (0, now))
        count = 1 if now - last >= FORGET else count + 1
        self._failed[address] = count, now
        while len(self._failed) > ADDRESSES:
            self._failed.popitem(last=False)
        return max(pause, min(LONGEST, 2.0 ** min(count - FREE - 1, 10))) if count > FREE else pause
