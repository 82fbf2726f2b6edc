"""The last events of a feed, and the health of its connections to the API server.

If a browser reconnects, the buffer gives it the events that it missed. If a connection to the API server does not work,
watchers receive a notice.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ..core.waiter import CLOCK, Clock

EVENTS = 2_000
BYTES = 2 * 1024 * 1024


@dataclass(frozen=True)
class Event:
    """One event.

    :param number: sequence number within the feed.
    :param data: JSON.
    """

    number: int
    kind: str
    data: str

    @property
    def size(self) -> int:
        return len(self.data)


class Ring:
    """Events by number, with limits on count and bytes.

    :param latest: kinds whose events are complete in themselves, so that only the last one is kept.
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
        """Add an event and wake all waiters.

        :param data: serializable to JSON, with finite numbers only.
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
        """Wake all waiters, because of an event or another change."""
        self._more.set()
        self._more = asyncio.Event()

    def last(self, kind: str) -> str:
        """Return the data of the last event of a kind in `latest`; empty before the first."""
        return self._latest[kind].data if kind in self._latest else ""

    def id_of(self, event: Event) -> str:
        """Return the ID of an event, which browsers send back as Last-Event-ID."""
        return f"{self._begun}-{event.number}"

    def place(self, last_id: str) -> int:
        """Return the number of the last event that a browser has received; 0 if the ID belongs to another feed."""
        begun, _, number = last_id.partition("-")
        known = begun == self._begun and number.isascii() and number.isdecimal() and len(number) < 16
        return min(int(number), self._count) if known else 0

    def after(self, number: int) -> list[Event]:
        """Return the kept events after a number, in order."""
        found: list[Event] = []
        for event in reversed(self._kept):
            if event.number <= number:
                break
            found.append(event)
        found += [event for event in self._latest.values() if event.number > number]
        return sorted(found, key=lambda event: event.number)

    async def wait(self, number: int, seconds: float) -> bool:
        """Wait for an event after a number, or for `wake`; return False after a timeout."""
        if self._count > number:
            return True
        try:
            await asyncio.wait_for(self._more.wait(), seconds)
        except TimeoutError:
            return False
        return True


FIRST_PAUSE, LONGEST_PAUSE = 0.5, 4.0
"""Seconds between two attempts to connect."""
Notice = dict[str, str]
"""`text`, empty if all connections work, and `since`, ISO 8601."""


class Health:
    """The connections by name.

    :param tell: called with the notice when it changes.
    """

    def __init__(self, tell: Callable[[Notice], None], clock: Clock = CLOCK) -> None:
        self._tell, self._clock = tell, clock
        self._ill: dict[str, tuple[str, float]] = {}
        self._pauses: dict[str, float] = {}
        self._told: Notice = {"text": "", "since": ""}
        self.heard_at = clock.monotonic()

    @property
    def whole(self) -> bool:
        return not self._ill

    def heard(self, *parts: str) -> None:
        """Record that data arrived, so these parts and the API server work."""
        self.heard_at = self._clock.monotonic()
        self.healed(*parts, "pulse")

    def healed(self, *parts: str) -> None:
        """Record that these parts work or are no longer needed."""
        for part in parts:
            self._ill.pop(part, None)
            self._pauses.pop(part, None)
        self._say()

    def failed(self, part: str, text: str, *, at_once: bool = False) -> float:
        """Record a failure of a part; return the seconds to wait before the next attempt.

        :param at_once: whether to notify at the first failure; otherwise at the second, because most lost connections
            reconnect.
        """
        pause = self._pauses.get(part, FIRST_PAUSE)
        known, since = self._ill.get(part, ("", self._clock.time()))
        self._ill[part] = (text if at_once or part in self._pauses else known, since)
        self._pauses[part] = min(LONGEST_PAUSE, pause * 2)
        self._say()
        return pause

    def _say(self) -> None:
        faults = sorted((since, text) for text, since in self._ill.values() if text)
        notice = {"text": "", "since": ""}
        if faults:
            since, text = faults[0]
            begun = datetime.fromtimestamp(since, UTC).isoformat(timespec="seconds")
            text = f"{text}; the page shows the state of that time."
            # If several connections fail for the same reason, the first one gives the time.
            notice = {"text": text, "since": self._told["since"] if text == self._told["text"] else begun}
        if notice != self._told:
            self._told = notice
            self._tell(notice)
