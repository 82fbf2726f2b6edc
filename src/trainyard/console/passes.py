"""Passes: unguessable parts of a path, each for one login and the TensorBoard of one claim.

A TensorBoard runs in an opaque origin. Browsers treat its requests as cross-site and send no cookie, so the path
authorizes them instead. A pass gives access to one claim only.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from .sessions import Session

PASS_SECONDS = 1800.0
"""Idle time after which a pass ends, as for a login."""
OF_SESSION = 20
"""Maximum passes of one login; a further pass ends the one that was idle for longest."""


@dataclass(eq=False)
class Pass:
    """A pass for the TensorBoard of one claim.

    :param used: monotonic time of the last request.
    """

    key: str = field(repr=False)
    session: Session
    namespace: str
    claim: str
    used: float

    @property
    def path(self) -> str:
        """Base path of the TensorBoard, with a trailing slash."""
        return f"/pass/{self.key}/{self.namespace}/{self.claim}/"


class Passes:
    """All passes, kept in memory only."""

    def __init__(self) -> None:
        self._known: dict[str, Pass] = {}

    def __len__(self) -> int:
        return len(self._known)

    def give(self, session: Session, namespace: str, claim: str, now: float) -> Pass:
        """Return the pass of a login for a claim; create it if there is none. The caller has checked the right."""
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
        """Return the pass of a path; None if it has ended or is for another claim."""
        found = self._known.get(key)
        if found is None or not _valid(found, now) or (found.namespace, found.claim) != (namespace, claim):
            return None
        found.used = now
        return found


def _valid(found: Pass, now: float) -> bool:
    return not found.session.ended and now - found.used < PASS_SECONDS
