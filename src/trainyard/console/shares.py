"""Limits on the memory and the threads that users of the console can take.

Parts: turns; the memory of lists; the lines of a log and the depth of a view. Turns limit concurrent work that uses
memory or threads, per user and in total. Lists from the API server have memory limits, per list and in total, because
users decide the size of objects.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakSet

from ..kube.api import KubeError


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


LIST_BYTES, ALL_BYTES = 64 * 1024 * 1024, 96 * 1024 * 1024
"""Limits of one list, and of all lists that are read, kept or watched. A pod takes about 6 KB; the console has
256 MiB."""
FULL = 507
"""Status of the error for an exceeded limit."""
SHARED = 64
"""Maximum characters of a key that objects of a page are assumed to share."""


class Held:
    """The memory of one list.

    :param what: path of the list, for the error.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self.bytes = 0
        _ALL.add(self)

    def take(self, more: int) -> None:
        """Add bytes; a negative number releases them.

        :raises KubeError: status `FULL`, a limit is exceeded; all bytes are released, so the caller must drop the list.
        """
        self.bytes += more
        if more <= 0:
            return
        why = ""
        if self.bytes > LIST_BYTES:
            why = f"this list takes more than {LIST_BYTES >> 20} MiB of the console"
        elif sum(each.bytes for each in _ALL) > ALL_BYTES:
            why = f"all lists together take more than {ALL_BYTES >> 20} MiB of the console"
        if why:
            self.bytes = 0
            raise KubeError(
                f"{self._what}: {why}.", status=FULL, remedy="Read it with kubectl, and delete large objects."
            )


_ALL: WeakSet[Held] = WeakSet()


def weight(value: Any) -> int:
    """Return the bytes of parsed JSON in memory, without short keys: the parser stores each only once per page."""
    found, ahead = 0, [value]
    while ahead:
        each = ahead.pop()
        found += sys.getsizeof(each)
        if isinstance(each, dict):
            found += sum(sys.getsizeof(key) for key in each if len(key) > SHARED)
            ahead += each.values()
        elif isinstance(each, list):
            ahead += each
    return found


LINE_BYTES = 8_192
"""Maximum bytes of a shown line: longer lines are not readable, and 20 browsers would have to hold them."""
VIEW_DEPTH = -10
"""Start depth for views, which are nested deeper than the limit of `plain` allows."""
