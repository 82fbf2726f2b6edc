"""The last events of a feed, so that a browser that was away gets what it missed."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import deque
from dataclasses import dataclass
from typing import Any

EVENTS = 2_000
BYTES = 2 * 1024 * 1024


@dataclass(frozen=True)
class Event:
    """One event.

    :param number: its place in the order of all events of the feed.
    :param data: JSON.
    """

    number: int
    kind: str
    data: str

    @property
    def size(self) -> int:
        return len(self.data)


class Ring:
    """Events by number, bounded in number and bytes.

    :param latest: kinds of which each says everything anew, so that only the last is kept.
    """

    def __init__(self, latest: tuple[str, ...] = (), events: int = EVENTS, limit: int = BYTES) -> None:
        self._begun = secrets.token_hex(4)
        self._kept: deque[Event] = deque()
        self._latest: dict[str, Event] = {}
        self._kinds = latest
        self._events, self._limit = events, limit
        self._bytes = self._count = 0
        self._more = asyncio.Event()

    def add(self, kind: str, data: Any) -> None:
        """Keep an event and wake up who waits.

        :param data: of JSON without numbers that are not finite.
        """
        self._count += 1
        event = Event(self._count, kind, json.dumps(data, allow_nan=False, separators=(",", ":")))
        if kind in self._kinds:
            self._latest[kind] = event
        else:
            self._kept.append(event)
            self._bytes += event.size
        while len(self._kept) > self._events or self._bytes > self._limit:
            self._bytes -= self._kept.popleft().size
        self.wake()

    def wake(self) -> None:
        """End all waiting: there is an event, or something else to look at."""
        self._more.set()
        self._more = asyncio.Event()

    def last(self, kind: str) -> str:
        """Data of the last event of one of the kinds of which only the last is kept; empty before the first."""
        return self._latest[kind].data if kind in self._latest else ""

    def id_of(self, event: Event) -> str:
        """What a browser sends back as Last-Event-ID."""
        return f"{self._begun}-{event.number}"

    def place(self, last_id: str) -> int:
        """Number of the event that a browser had last; 0, which is before all, where it is not of this feed."""
        begun, _, number = last_id.partition("-")
        known = begun == self._begun and number.isascii() and number.isdecimal() and len(number) < 16
        return min(int(number), self._count) if known else 0

    def after(self, number: int) -> list[Event]:
        """Events that came after that of a number, in their order, as far as they are kept."""
        found: list[Event] = []
        for event in reversed(self._kept):
            if event.number <= number:
                break
            found.append(event)
        found += [event for event in self._latest.values() if event.number > number]
        return sorted(found, key=lambda event: event.number)

    async def wait(self, number: int, seconds: float) -> bool:
        """Wait for an event after that of a number, or `wake`; False after so many seconds without."""
        if self._count > number:
            return True
        try:
            await asyncio.wait_for(self._more.wait(), seconds)
        except TimeoutError:
            return False
        return True
