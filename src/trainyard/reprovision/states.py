"""The state of a site after a run, and the notices about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from ..core.files import write
from .item import DONE, PROVEN

State = Literal["clean", "drift", "repaired", "person", "failed", "unknown"]
STATES: tuple[State, ...] = get_args(State)
WORDS: Mapping[State, str] = {
    "clean": "clean",
    "drift": "drift",
    "repaired": "drift repaired",
    "person": "an operator is needed",
    "failed": "a repair failed",
    "unknown": "unknown",
}
REMINDER_SECONDS = 20 * 3600.0
"""One day, minus a margin: the random delay of a nightly timer can move two runs closer together."""


@dataclass(frozen=True)
class Told:
    """The state that was announced last.

    :param since: when the site entered the state, in seconds since the epoch.
    :param told: when the last notice was sent, in seconds since the epoch; 0 for never.
    """

    state: State
    since: float
    told: float


@dataclass(frozen=True)
class Notice:
    """A notice to send.

    :param before: the previous state; None for the first one.
    :param since: when the site entered the state, in seconds since the epoch.
    """

    kind: Literal["change", "reminder"]
    state: State
    before: State | None
    since: float

    @property
    def words(self) -> str:
        """Return the notice as one line of text."""
        again = "still: " if self.kind == "reminder" else ""
        return f"{again}{WORDS[self.state]}"


def state_of(report: Mapping[str, Any]) -> State | None:
    """Return the state that a report shows; None if another run held the lock, as such a report shows nothing.

    :param report: the content of a `report.json`.
    """
    status, items = report.get("exit_status"), report.get("items") or []
    if status == 4:
        return None
    if status == 5:
        return "failed"
    if status == 0:
        return "repaired" if any(item.get("outcome") in (DONE, PROVEN) for item in items) else "clean"
    if status == 1:
        return "person" if any(item.get("class") not in ("repairable", "restart") for item in items) else "drift"
    if status == 3:
        # A limit waits for an operator; a window opens by itself.
        return "person" if report.get("limits") else "drift"
    return "unknown"


def step(last: Told | None, state: State | None, now: float) -> tuple[Told | None, Notice | None]:
    """Return the announced state after a run, and the notice to send.

    Every change of state gives a notice. While an operator is needed, a reminder follows once a day. A clean first
    run gives none.

    :param last: the state that was announced last; None at the first run.
    :param state: the result of `state_of`.
    :param now: seconds since the epoch.
    """
    if state is None:
        return last, None
    if last is None or state != last.state:
        before = last.state if last else None
        quiet = last is None and state == "clean"
        return Told(state, now, 0.0 if quiet else now), None if quiet else Notice("change", state, before, now)
    # A clock that was set back must not delay the reminder.
    if state == "person" and not 0 <= now - last.told < REMINDER_SECONDS:
        return replace(last, told=now), Notice("reminder", state, state, last.since)
    return last, None


def load(path: Path) -> Told | None:
    """Return the saved state; None if there is no readable one, so that the next state is announced again."""
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        told = Told(read["state"], float(read["since"]), float(read["told"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return told if told.state in STATES else None


def save(path: Path, told: Told) -> None:
    """Save the announced state atomically.

    :raises TrainyardError: the disk refuses.
    """
    write(str(path), json.dumps(asdict(told)) + "\n", 0o600)
