"""Passes: for one login and the TensorBoard of one claim, the part of a path that no visitor can guess.

A TensorBoard runs in an opaque origin, whose requests bring no cookie: the browser takes them for requests of another
site. The path is what they bring instead. It shows one claim, and does nothing else.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from .sessions import Session

PASS_SECONDS = 1800.0
"""Without a request after which a pass ends, as a login does."""
OF_SESSION = 20
"""Of one login; the one that was idle for longest goes when there would be more."""


@dataclass(eq=False)
class Pass:
    """What a page of a TensorBoard shows.

    :param used: by the monotonic clock.
    """

    key: str = field(repr=False)
    session: Session
    namespace: str
    claim: str
    used: float

    @property
    def path(self) -> str:
        """Below which the TensorBoard is, with a slash at its end."""
        return f"/pass/{self.key}/{self.namespace}/{self.claim}/"


class Passes:
    """All passes, in memory alone."""

    def __init__(self) -> None:
        self._known: dict[str, Pass] = {}

    def __len__(self) -> int:
        return len(self._known)

    def give(self, session: Session, namespace: str, claim: str, now: float) -> Pass:
        """The pass of a login for a claim; the caller has asked for its right."""
        self._known = {key: each for key, each in self._known.items() if _valid(each, now)}
        mine = sorted((each for each in self._known.values() if each.session is session), key=lambda each: each.used)
        for each in mine:
            if (each.namespace, each.claim) == (namespace, claim):
                each.used = now
                return each
        for each in mine[: max(0, len(mine) - OF_SESSION + 1)]:
            del self._known[each.key]
        made = Pass(secrets.token_urlsafe(32), session, namespace, claim, now)
        self._known[made.key] = made
        return made

    def find(self, key: str, namespace: str, claim: str, now: float) -> Pass | None:
        """The pass of a path; None for one that has ended, or is for another claim."""
        found = self._known.get(key)
        if found is None or not _valid(found, now) or (found.namespace, found.claim) != (namespace, claim):
            return None
        found.used = now
        return found


def _valid(found: Pass, now: float) -> bool:
    return not found.session.ended and now - found.used < PASS_SECONDS
