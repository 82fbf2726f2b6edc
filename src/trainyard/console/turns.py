"""Turns for what takes memory or threads: so many at once for each user, and so many in all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class OfEach:
    """A number of turns for each of many, and only those are remembered that have or want one.

    :param turns: of each.
    """

    def __init__(self, turns: int) -> None:
        self._turns = turns
        self._used: dict[str, tuple[asyncio.Semaphore, int]] = {}

    def __len__(self) -> int:
        return len(self._used)

    @asynccontextmanager
    async def taken(self, who: str) -> AsyncIterator[None]:
        """Wait for a turn, and have it."""
        turns, users = self._used.get(who, (asyncio.Semaphore(self._turns), 0))
        self._used[who] = turns, users + 1
        try:
            async with turns:
                yield
        finally:
            users = self._used[who][1] - 1
            self._used[who] = turns, users
            if not users:
                del self._used[who]


class Turns:
    """Turns in all and of each: who wants many waits for his own, and the others do not wait for him.

    :param in_all: at once.
    :param of_one: at once.
    """

    def __init__(self, in_all: int, of_one: int) -> None:
        self._all, self._of_one = asyncio.Semaphore(in_all), OfEach(of_one)

    @asynccontextmanager
    async def taken(self, who: str) -> AsyncIterator[None]:
        """Wait for a turn, and have it."""
        async with self._of_one.taken(who), self._all:
            yield
