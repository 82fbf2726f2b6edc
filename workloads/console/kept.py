"""The last view that was whole of each page, shown with its age while the API server does not answer."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible.module_utils.trainyard.core.clock import CLOCK, Clock

BYTES = 8 * 1024 * 1024
LARGEST = 512 * 1024


@dataclass(frozen=True)
class View:
    """What a page showed, and when, seconds since the epoch."""

    view: Mapping[str, Any]
    at: float


class Kept:
    """Views by the login that saw them and the page; none is ever shown to another login."""

    def __init__(self, clock: Clock = CLOCK) -> None:
        self._clock = clock
        self._kept: OrderedDict[tuple[str, str], tuple[View, int]] = OrderedDict()
        self._bytes = 0

    def keep(self, session: str, page: str, view: Mapping[str, Any], size: int) -> None:
        """
        :param size: of the view as JSON, in bytes; one that is too large is not kept.
        """
        self._drop((session, page))
        if size > LARGEST:
            return
        self._kept[session, page] = View(view, self._clock.time()), size
        self._bytes += size
        while self._bytes > BYTES:
            self._drop(next(iter(self._kept)))

    def find(self, session: str, page: str) -> View | None:
        found = self._kept.get((session, page))
        return found[0] if found else None

    def forget(self, session: str) -> None:
        """Drop what a login has seen."""
        for key in [key for key in self._kept if key[0] == session]:
            self._drop(key)

    def _drop(self, key: tuple[str, str]) -> None:
        _, size = self._kept.pop(key, (None, 0))
        self._bytes -= size
