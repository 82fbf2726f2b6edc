"""A run that goes on and makes no steps."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime

from ..core.untrusted import number, whole
from ..trainings.logs import Event
from ..trainings.places import pod_state
from ..trainings.told import knobs
from .answer import Evidence
from .rule import Hit
from .text import span
from .view import View

LATE_SECONDS = 8.0
"""A line of steps that is late by less may be late for want of a CPU."""
LATE_INTERVALS = 3.0
"""Usual times between two of them, after which the next one is late."""
_NO_STEPS = ("evaluating", "export", "end", "error")
"""Events after which no step is late."""


def silent(view: View) -> Iterator[Hit]:
    """It goes on and makes no steps; the watchdog's rest is named."""
    late = lateness(view)
    if late is None:
        return
    step, quiet = view.step, view.now.timestamp() - view.steps_since
    rest = max(0.0, view.stall_timeout - quiet)
    when = datetime.fromtimestamp(view.steps_since, UTC).isoformat(timespec="seconds")
    told = f"step {step.get('step')} of {step.get('steps_total') or '?'} was its last, {span(quiet)} ago"
    yield Hit(
        view.deciding,
        f"it has made no step for {span(quiet)}, usual are {span(max(1.0, late))}",
        "{} makes no steps",
        [
            Evidence("log", view.deciding, when, told),
            Evidence(
                "log", view.deciding, "", f"its watchdog ends it in {span(rest)}, and it goes on from its checkpoint"
            ),
        ],
        f"trainyard logs {view.snapshot.run} --role of the others; a ps or worker hangs, or its node is slow",
    )


def lateness(view: View) -> float | None:
    """The usual seconds between two lines of steps, where the next one is late; None where nothing is wrong."""
    chief = view.chief
    if chief is None or not view.goes_on or pod_state(chief)[0] != "running":
        return None
    said = [each for each in view.said(chief) if "time" in each]
    if not said or not view.steps_since:
        return None
    now = view.now.timestamp()
    newest = said[-1]
    # The watchdog sees each batch of an evaluation, which may take any time; it gives a checkpoint its own limit.
    if newest["event"] in _NO_STEPS or (newest["event"] == "saving" and now - newest["time"] <= view.stall_timeout):
        return None
    usual = _usual(view, said)
    # What came after the last step, such as an evaluation that is done, is a sign of life, too.
    quiet = now - (number(newest["time"]) or 0.0)
    return usual if quiet > max(LATE_SECONDS, LATE_INTERVALS * usual) else None


def _usual(view: View, said: list[Event]) -> float:
    """Seconds between two lines of steps, as the last of them say by their steps and speed: an evaluation that lies
    between two counts. Of a run that has said one line, or no speed, what it was told, or what its watchdog allows."""
    steps = [each for each in said if each["event"] == "step" and "step" in each]
    pairs = itertools.pairwise(steps[-6:])
    gaps = [(after["step"] - before["step"]) / speed for before, after in pairs if (speed := _speed(after)) > 0]
    if gaps:
        return max(gaps)
    every = whole(knobs(view.live).get("report_every"), 1)
    if steps and every and _speed(steps[-1]) > 0:
        return every / _speed(steps[-1])
    return view.stall_timeout / LATE_INTERVALS


def _speed(step: Event) -> float:
    return number(step.get("steps_per_second")) or 0.0
