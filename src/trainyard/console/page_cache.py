"""The last complete view of each page, shown with its age while the API server does not answer."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..core.waiter import CLOCK, Clock

BYTES = 8 * 1024 * 1024
LARGEST = 1024 * 1024
OF_LOGIN = 50
"""Maximum views of one login."""
EXTRA = 500
"""Bytes of a view in addition to its text and its key."""


@dataclass(frozen=True)
class View:
    """The view of a page, and its time in seconds since the epoch."""

    view: Mapping[str, Any]
    at: float


class Kept:
    """Views by login and page; a view is only shown to the login that read it.

    They are kept as text and counted in bytes, because objects are several times as large.
    """

    def __init__(self, clock: Clock = CLOCK) -> None:
        self._clock = clock
        self._kept: OrderedDict[tuple[str, str], tuple[bytes, float]] = OrderedDict()
        self._of_login: dict[str, OrderedDict[str, None]] = {}
        self.bytes = 0
        """Total size of all views, including keys."""

    def keep(self, session: str, page: str, view: str) -> None:
        """
        :param session: key of the login.
        :param page: key of the page and its parameters; see `pages.key_of`.
        :param view: JSON; a view that is too large is not kept.
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
        """Drop the views of a login."""
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
