"""An `Api` that retries while the server is briefly unavailable, for work that must not stop halfway."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from functools import partial
from typing import Any

from ..core.clock import CLOCK, Clock
from .api import Api
from .apply import retry

OUTAGE_SECONDS = 90.0
"""A restarting control plane answers again within a minute."""


class PatientApi(Api):
    """A wrapper of an `Api` that retries calls on transient errors, each for at most `OUTAGE_SECONDS`.

    If the answer to a creation was lost, the retry gets status 409.
    """

    def __init__(self, api: Api, clock: Clock = CLOCK) -> None:
        super().__init__(api._transport, api._stream)
        self._plain, self._clock = api, clock

    def call(self, method: str, path: str, **named: Any) -> str:
        once = partial(super().call, method, path, **named)
        return str(retry(once, timeout=OUTAGE_SECONDS, clock=self._clock))

    def pieces(self, path: str, query: Mapping[str, Any], *, what: str = "") -> Generator[bytes, None, None]:
        """Stream without retries: an unreadable log may be the fault of its node, which may never answer again."""
        return self._plain.pieces(path, query, what=what)
