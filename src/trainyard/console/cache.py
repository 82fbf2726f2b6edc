"""A cache of answers of the API server for a moment, so that concurrent equal requests are sent once."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

from ..core.clock import CLOCK, Clock

SECONDS = 1.5
BYTES = 6 * 1024 * 1024
"""Limit of all cached answers in their serialized form; as objects they are several times as large."""

EXTRA = 2_000
"""Bytes added per answer for its key, which contains a token and a path."""

Made = tuple[Any, int]
"""A value and its approximate bytes."""


class Cache:
    """Values by key.

    :param seconds: lifetime of a value.
    :param limit: bytes of all values in total; the oldest is dropped first.
    """

    def __init__(self, clock: Clock = CLOCK, *, seconds: float = SECONDS, limit: int = BYTES) -> None:
        self._clock = clock
        self._seconds = seconds
        self._limit = limit
        self._kept: OrderedDict[Hashable, tuple[float, Any, int]] = OrderedDict()
        self._bytes = 0
        self._asked: dict[Hashable, asyncio.Task[Made]] = {}

    async def get(self, key: Hashable, make: Callable[[], Awaitable[Made]]) -> Any:
        """Return the value of a key; if there is none, make it. Concurrent callers wait for the same value.

        A caller that is cancelled does not cancel the value for the others. An error is raised for all who wait, and is
        not cached.
        """
        self._sweep()
        if key in self._kept:
            return self._kept[key][1]
        if (task := self._asked.get(key)) is None:
            task = self._asked[key] = asyncio.ensure_future(self._make(key, make))
            task.add_done_callback(_look_at)
        value, _ = await asyncio.shield(task)
        return value

    async def _make(self, key: Hashable, make: Callable[[], Awaitable[Made]]) -> Made:
        try:
            value, size = await make()
        finally:
            del self._asked[key]
        size += EXTRA
        self._kept[key] = self._clock.monotonic(), value, size
        self._bytes += size
        self._sweep()
        return value, size

    def _sweep(self) -> None:
        due = self._clock.monotonic() - self._seconds
        while self._kept:
            key, (made, _, size) = next(iter(self._kept.items()))
            if made > due and self._bytes <= self._limit:
                return
            del self._kept[key]
            self._bytes -= size


def _look_at(task: asyncio.Task[Made]) -> None:
    """Retrieve the exception of a task, so that asyncio does not log it if every caller has left."""
    if not task.cancelled():
        task.exception()
