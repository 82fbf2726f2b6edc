"""Turns that limit concurrent work that uses memory or threads, per user and in total."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class OfEach:
    """A number of turns for each user; only users who hold or wait for a turn are kept.

    :param turns: per user.
    """

    def __init__(self, turns: int) -> None:
        self._turns = turns
        self._used: dict[str, tuple[asyncio.Semaphore, int]] = {}

    def __len__(self) -> int:
        return len(self._used)

    @asynccontextmanager
    async def taken(self, who: str) -> AsyncIterator[None]:
        """Wait for a turn and hold it."""
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
    """Turns in total and per user: a user with many requests waits without delaying the others.

    :param in_all: total number of concurrent turns.
    :param of_one: concurrent turns of one user.
    """

    def __init__(self, in_all: int, of_one: int) -> None:
        self._all, self._of_one = asyncio.Semaphore(in_all), OfEach(of_one)

    @asynccontextmanager
    async def taken(self, who: str) -> AsyncIterator[None]:
        """Wait for a turn and hold it."""
        async with self._of_one.taken(who), self._all:
            yield
