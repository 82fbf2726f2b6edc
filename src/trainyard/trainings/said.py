"""Events that a process has said, in bounded memory: a program may write them without end."""

from __future__ import annotations

from collections import deque

from .logs import Event

EVENTS = 20_000
"""Last events that are held."""
EVENT_BYTES = 8 * 2**20
"""Of the lines of these."""
NAMES = 256
"""Kinds and fields whose events are held beyond that; a hostile program makes up others without end."""


class Said:
    """The events of one process in their order.

    Of those that are dropped, the first and the last of each kind stay, and the last with each field: an accuracy may
    lie a million steps back.
    """

    def __init__(self) -> None:
        self._recent: deque[tuple[int, int, Event]] = deque()
        self._first: dict[str, tuple[int, Event]] = {}
        self._last: dict[str, tuple[int, Event]] = {}
        self._count = self._size = 0

    def add(self, event: Event, size: int) -> None:
        """Take in the next event.

        :param size: bytes of its line.
        """
        self._count += 1
        self._size += size
        self._recent.append((self._count, size, event))
        while len(self._recent) > EVENTS or self._size > EVENT_BYTES:
            number, old_size, old = self._recent.popleft()
            self._size -= old_size
            # A long one would be held for its fields for ever.
            if old_size <= EVENT_BYTES // NAMES // 4:
                self._remember(number, old)

    def events(self) -> list[Event]:
        """What is held, the oldest first."""
        held = dict([*self._first.values(), *self._last.values()])
        return [held[number] for number in sorted(held)] + [event for _, _, event in self._recent]

    def _remember(self, number: int, event: Event) -> None:
        kind = str(event.get("event"))
        if kind in self._first or len(self._first) < NAMES:
            self._first.setdefault(kind, (number, event))
        for name in (f"event {kind}", *event):
            if name in self._last or len(self._last) < NAMES:
                self._last[name] = (number, event)
