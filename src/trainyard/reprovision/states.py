"""In which state a site is after a run, and when somebody is told."""

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
    "person": "a person is needed",
    "failed": "a repair failed",
    "unknown": "cannot tell",
}
REMINDER_SECONDS = 20 * 3600.0
"""A day, less what the random delay of a nightly timer may bring two runs closer together."""


@dataclass(frozen=True)
class Told:
    """What those who are to hear of it know.

    :param since: when the site came into the state, in seconds since the epoch.
    :param told: when it was said last; 0 for never.
    """

    state: State
    since: float
    told: float


@dataclass(frozen=True)
class Notice:
    """Something to be said.

    :param before: the state before; None for the first one.
    :param since: since when the site is in the state, in seconds since the epoch.
    """

    kind: Literal["change", "reminder"]
    state: State
    before: State | None
    since: float

    @property
    def words(self) -> str:
        """The notice as a line for people."""
        again = "still: " if self.kind == "reminder" else ""
        return f"{again}{WORDS[self.state]}"


def state_of(report: Mapping[str, Any]) -> State | None:
    """The state that a report tells of; None where it tells nothing, because another run had the lock.

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
        # A limit waits for a person; a window opens by itself.
        return "person" if report.get("limits") else "drift"
    return "unknown"


def step(last: Told | None, state: State | None, now: float) -> tuple[Told | None, Notice | None]:
    """What is known after a run, and what is to be said.

    Said is every change of state, and once a day that a person is still needed. A first run that finds nothing is
    no news.

    :param last: what was known before; None at the first run.
    :param state: what `state_of` gave.
    :param now: seconds since the epoch.
    """
    if state is None:
        return last, None
    if last is None or state != last.state:
        before = last.state if last else None
        quiet = last is None and state == "clean"
        return Told(state, now, 0.0 if quiet else now), None if quiet else Notice("change", state, before, now)
    # A clock that was set back must not silence the reminder until it has caught up.
    if state == "person" and not 0 <= now - last.told < REMINDER_SECONDS:
        return replace(last, told=now), Notice("reminder", state, state, last.since)
    return last, None


def load(path: Path) -> Told | None:
    """What was kept; None where there is nothing, or nothing that can be read: then the next state is said again."""
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        told = Told(read["state"], float(read["since"]), float(read["told"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return told if told.state in STATES else None


def save(path: Path, told: Told) -> None:
    """Keep it, whole or not at all.

    :raises TrainyardError: the disk refuses.
    """
    write(str(path), json.dumps(asdict(told)) + "\n", 0o600)
