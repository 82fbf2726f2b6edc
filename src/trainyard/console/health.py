"""Track the connections to the API server, and notify watchers if one does not work."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from ..core.clock import CLOCK, Clock

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
        told = sorted((since, text) for text, since in self._ill.values() if text)
        notice = {"text": "", "since": ""}
        if told:
            since, text = told[0]
            begun = datetime.fromtimestamp(since, UTC).isoformat(timespec="seconds")
            text = f"{text}; the page shows the state of that time."
            # If several connections fail for the same reason, the first one gives the time.
            notice = {"text": text, "since": self._told["since"] if text == self._told["text"] else begun}
        if notice != self._told:
            self._told = notice
            self._tell(notice)
