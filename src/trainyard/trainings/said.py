"""Events of a process in bounded memory, because a program may write them without end."""

from __future__ import annotations

from collections import deque

from .logs import Event

EVENTS = 20_000
"""Number of latest events that are kept."""
EVENT_BYTES = 8 * 2**20
"""Bytes of the lines of these events."""
NAMES = 256
"""Number of kinds and fields whose older events are kept. A hostile program may invent others without end."""


class Said:
    """The events of one process in their order.

    Older events are dropped, except the first and the last of each kind and the last with each field. The last accuracy
    may be a million steps old.
    """

    def __init__(self) -> None:
        self._recent: deque[tuple[int, int, Event]] = deque()
        self._first: dict[str, tuple[int, Event]] = {}
        self._last: dict[str, tuple[int, Event]] = {}
        self._count = self._size = 0

    def add(self, event: Event, size: int) -> None:
        """Add the next event.

        :param size: bytes of its line.
        """
        self._count += 1
        self._size += size
        self._recent.append((self._count, size, event))
        while len(self._recent) > EVENTS or self._size > EVENT_BYTES:
            number, old_size, old = self._recent.popleft()
            self._size -= old_size
            # A long event would stay in memory forever because of its fields.
            if old_size <= EVENT_BYTES // NAMES // 4:
                self._remember(number, old)

    def events(self) -> list[Event]:
        """Return the kept events, oldest first."""
        held = dict([*self._first.values(), *self._last.values()])
        return [held[number] for number in sorted(held)] + [event for _, _, event in self._recent]

    def _remember(self, number: int, event: Event) -> None:
        kind = str(event.get("event"))
        if kind in self._first or len(self._first) < NAMES:
            self._first.setdefault(kind, (number, event))
        for name in (f"event {kind}", *event):
            if name in self._last or len(self._last) < NAMES:
                self._last[name] = (number, event)
