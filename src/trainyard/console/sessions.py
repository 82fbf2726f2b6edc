"""Logins, kept in memory only, for 30 minutes without a request and never longer than the token."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from ..core.waiter import CLOCK, Clock
from .console_config import IDLE_SECONDS

SESSIONS = 200
SESSIONS_OF_ONE = 20
"""Maximum sessions of one user; a further login ends the one that was idle for longest."""


@dataclass(eq=False)
class Session:
    """A login.

    :param key: value of the browser's cookie.
    :param csrf: value that pages of this session send with an action; no other origin can read it.
    :param token: of the user; in no representation and no log.
    :param user: the token's user as the API server names it.
    :param ends: seconds since the epoch; infinite if the token contains no expiry.
    :param used: monotonic time of the last request.
    """

    key: str = field(repr=False)
    csrf: str = field(repr=False)
    token: str = field(repr=False)
    user: str
    ends: float
    used: float
    ended: bool = False
    flash: str = ""
    """Message that the next page shows once: the result of an action sent by a form without JavaScript."""
    at_end: list[Callable[[], object]] = field(default_factory=list, repr=False)

    @property
    def identity(self) -> str:
        """Hash of the token, for keys of cached data."""
        return hashlib.sha256(self.token.encode()).hexdigest()


class Sessions:
    """All logins.

    :param idle: seconds without a request after which a login ends.
    """

    def __init__(self, clock: Clock = CLOCK, idle: float = IDLE_SECONDS) -> None:
        self._clock = clock
        self._idle = idle
        self._known: dict[str, Session] = {}

    def __len__(self) -> int:
        return len(self._known)

    def begin(self, token: str, user: str) -> Session | None:
        """Create a login with a new key; None if other users have too many."""
        self.sweep()
        mine = sorted((each for each in self._known.values() if each.user == user), key=lambda each: each.used)
        for oldest in mine[: max(0, len(mine) - SESSIONS_OF_ONE + 1)]:
            self.end(oldest)
        if len(self._known) >= SESSIONS:
            return None
        key, csrf = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        session = Session(key, csrf, token, user, ends=token_end(token), used=self._clock.monotonic())
        self._known[key] = session
        return session

    def find(self, key: str, *, use: bool = True) -> Session | None:
        """Return the login of a cookie; None if it is unknown or has ended.

        :param use: whether this request comes from the user and therefore restarts the idle time.
        """
        session = self._known.get(key)
        if session is None or not self.alive(session):
            return None
        if use:
            session.used = self._clock.monotonic()
        return session

    def alive(self, session: Session) -> bool:
        """Return whether a login is still valid; end it if its time is over."""
        if session.ended:
            return False
        idle = self._clock.monotonic() - session.used >= self._idle
        if idle or self._clock.time() >= session.ends:
            self.end(session)
        return not session.ended

    def end(self, session: Session) -> None:
        """Forget a login and its token, and run its `at_end` callbacks."""
        self._known.pop(session.key, None)
        session.ended, session.token = True, ""
        while session.at_end:
            session.at_end.pop()()

    def sweep(self) -> None:
        """End the logins whose time is over."""
        for session in list(self._known.values()):
            self.alive(session)


def token_end(token: str) -> float:
    """Return the expiry in a token, in seconds since the epoch; infinite if it contains none.

    The expiry is not verified, because the API server does that; a forged one only affects the forger's own login.
    """
    parts = token.split(".")
    if len(parts) != 3:
        return float("inf")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return float(claims["exp"])
    except (binascii.Error, ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return float("inf")
