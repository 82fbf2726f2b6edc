"""Who is logged in: in memory alone, for 30 minutes without a request, and never longer than the token."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from ..core.clock import CLOCK, Clock
from .config import IDLE_SECONDS

SESSIONS = 200
SESSIONS_OF_ONE = 20
"""Of one user; the one that was idle for longest goes when there would be more."""


@dataclass(eq=False)
class Session:
    """One login.

    :param key: what the browser's cookie has.
    :param csrf: what a page of this session sends with an action, which no other origin can read.
    :param token: the user's own; it is in no representation and no log.
    :param user: as the API server names who has the token.
    :param ends: seconds since the epoch; infinite where the token does not say when it ends.
    """

    key: str = field(repr=False)
    csrf: str = field(repr=False)
    token: str = field(repr=False)
    user: str
    ends: float
    used: float
    ended: bool = False
    flash: str = ""
    """What the next page says, once: how an action ended that a form without JavaScript has sent."""
    at_end: list[Callable[[], object]] = field(default_factory=list, repr=False)

    @property
    def identity(self) -> str:
        """Of the token, for keys of what is kept for it."""
        return hashlib.sha256(self.token.encode()).hexdigest()


class Sessions:
    """All logins.

    :param idle: seconds without a request after which one ends.
    """

    def __init__(self, clock: Clock = CLOCK, idle: float = IDLE_SECONDS) -> None:
        self._clock = clock
        self._idle = idle
        self._known: dict[str, Session] = {}

    def __len__(self) -> int:
        return len(self._known)

    def begin(self, token: str, user: str) -> Session | None:
        """A new login with an id of its own; None where there are too many of other users."""
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
        """The login of a cookie; None for one that is unknown or has ended.

        :param use: whether this is a request of the user's, from which the time of idleness counts anew.
        """
        session = self._known.get(key)
        if session is None or not self.alive(session):
            return None
        if use:
            session.used = self._clock.monotonic()
        return session

    def alive(self, session: Session) -> bool:
        """Whether a login goes on; one whose time is over ends here."""
        if session.ended:
            return False
        idle = self._clock.monotonic() - session.used >= self._idle
        if idle or self._clock.time() >= session.ends:
            self.end(session)
        return not session.ended

    def end(self, session: Session) -> None:
        """Forget a login, with its token, and tell whatever works for it."""
        self._known.pop(session.key, None)
        session.ended, session.token = True, ""
        while session.at_end:
            session.at_end.pop()()

    def sweep(self) -> None:
        """End those whose time is over."""
        for session in list(self._known.values()):
            self.alive(session)


def token_end(token: str) -> float:
    """When a token says that it ends, seconds since the epoch; infinite where it does not say.

    Not checked, for that is the API server's: a forged end only ends the forger's own login.
    """
    parts = token.split(".")
    if len(parts) != 3:
        return float("inf")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return float(claims["exp"])
    except (binascii.Error, ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return float("inf")
