"""An API server whose short absences are ridden out, for what must not end half done."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from functools import partial
from typing import Any

from ..core.clock import CLOCK, Clock
from .api import Api
from .apply import retry

OUTAGE_SECONDS = 90.0
"""A control plane that restarts answers again within a minute."""


class PatientApi(Api):
    """The server of another `Api`, whose calls are repeated while their error is one that passes by itself.

    Each for `OUTAGE_SECONDS` at most. A creation whose answer was lost is repeated, too, and gets status 409 then.
    """

    def __init__(self, api: Api, clock: Clock = CLOCK) -> None:
        super().__init__(api._transport, api._stream)
        self._plain, self._clock = api, clock

    def call(self, method: str, path: str, **named: Any) -> str:
        once = partial(super().call, method, path, **named)
        return str(retry(once, timeout=OUTAGE_SECONDS, clock=self._clock))

    def pieces(self, path: str, query: Mapping[str, Any], *, what: str = "") -> Generator[bytes, None, None]:
        """As it is: that a log cannot be read may be the fault of its node alone, which may never answer again."""
        return self._plain.pieces(path, query, what=what)
