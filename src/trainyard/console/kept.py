"""The last view that was whole of each page, shown with its age while the API server does not answer."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..core.clock import CLOCK, Clock

BYTES = 8 * 1024 * 1024
LARGEST = 1024 * 1024
OF_LOGIN = 50
"""Views of one login."""
EXTRA = 500
"""Bytes that one view takes beside its text and its key."""


@dataclass(frozen=True)
class View:
    """What a page showed, and when, seconds since the epoch."""

    view: Mapping[str, Any]
    at: float


class Kept:
    """Views by the login that saw them and the page; none is ever shown to another login.

    They are kept as text, whose bytes are counted: as objects they are several times as large.
    """

    def __init__(self, clock: Clock = CLOCK) -> None:
        self._clock = clock
        self._kept: OrderedDict[tuple[str, str], tuple[bytes, float]] = OrderedDict()
        self._of_login: dict[str, OrderedDict[str, None]] = {}
        self.bytes = 0
        """All that is kept, with its keys."""

    def keep(self, session: str, page: str, view: str) -> None:
        """
        :param page: its name and what it was asked for; see `pages.key_of`.
        :param view: JSON; one that is too large is not kept.
        """
        self._drop((session, page))
        text = view.encode()
        if len(text) > LARGEST:
            return
        self._kept[session, page] = text, self._clock.time()
        mine = self._of_login.setdefault(session, OrderedDict())
        mine[page] = None
        self.bytes += _size(page, text)
        if len(mine) > OF_LOGIN:
            self._drop((session, next(iter(mine))))
        while self.bytes > BYTES:
            self._drop(next(iter(self._kept)))

    def find(self, session: str, page: str) -> View | None:
        text, at = self._kept.get((session, page), (b"", 0.0))
        return View(json.loads(text), at) if text else None

    def forget(self, session: str) -> None:
        """Drop what a login has seen."""
        for page in list(self._of_login.get(session, ())):
            self._drop((session, page))

    def _drop(self, key: tuple[str, str]) -> None:
        if key not in self._kept:
            return
        session, page = key
        text, _ = self._kept.pop(key)
        self.bytes -= _size(page, text)
        del self._of_login[session][page]
        if not self._of_login[session]:
            del self._of_login[session]


def _size(page: str, text: bytes) -> int:
    return len(page) + len(text) + EXTRA
