"""Guessing tokens is made slow, for who guesses alone: the answer to a wrong token is delayed, a right one is not."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext

from ..core.clock import CLOCK, Clock
from .connections import is_shared
from .turns import OfEach

FREE = 5
"""Failures of one address that cost nothing."""
LONGEST = 10.0
FORGET = 900.0
ADDRESSES = 10_000
TOTAL, WINDOW = 100, 60.0
"""Failures of all addresses together within so many seconds; beyond them, every failure is delayed."""
TOTAL_PAUSE = 2.0
AT_ONCE, OF_ADDRESS = 8, 2
"""Tokens that the API server is asked about at once: in all, and of one address that is not shared."""
HELD_SECONDS = 0.25
"""A wrong token keeps its turn for so long: 32 of them a second is the most that the API server is asked about."""


class Throttle:
    """Failed logins by address; times in seconds.

    :param sleep: as asyncio's.
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
        """A turn to ask about a token; what it gives has to be called where that was right.

        Any other end keeps the turn for a moment, that of a client that leaves as well.
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
        """Count a failure, and wait before it is answered: longer for each of an address that is not shared."""
        await self._sleep(self._count(address))

    def succeeded(self, address: str) -> None:
        self._failed.pop(address, None)

    def _count(self, address: str) -> float:
        """How long a failure has to wait for its answer."""
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
