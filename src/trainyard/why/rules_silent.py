"""Rule for a run that is active and makes no steps."""

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
"""A shorter delay of a step line may just be a shortage of CPU."""
LATE_INTERVALS = 3.0
"""Number of usual intervals between step lines after which the next one is late."""
_NO_STEPS = ("evaluating", "export", "end", "error")
"""Events after which no step line is expected."""


def silent(view: View) -> Iterator[Hit]:
    """The run is active and makes no steps. The evidence names the time until its watchdog ends it."""
    late = lateness(view)
    if late is None:
        return
    step, quiet = view.step, view.now.timestamp() - view.steps_since
    rest = max(0.0, view.stall_timeout - quiet)
    when = datetime.fromtimestamp(view.steps_since, UTC).isoformat(timespec="seconds")
    told = f"last step: {step.get('step')} of {step.get('steps_total') or '?'}, {span(quiet)} ago"
    yield Hit(
        view.deciding,
        f"it has made no step for {span(quiet)}; the usual interval is {span(max(1.0, late))}",
        "{} makes no steps",
        [
            Evidence("log", view.deciding, when, told),
            Evidence(
                "log", view.deciding, "", f"its watchdog ends it in {span(rest)}; it continues from its checkpoint"
            ),
        ],
        f"run trainyard logs {view.snapshot.run} --role ROLE for each other role: one hangs, or its node is slow",
    )


def lateness(view: View) -> float | None:
    """Return the usual seconds between two step lines if the next one is late, else None."""
    chief = view.chief
    if chief is None or not view.goes_on or pod_state(chief)[0] != "running":
        return None
    said = [each for each in view.said(chief) if "time" in each]
    if not said or not view.steps_since:
        return None
    now = view.now.timestamp()
    newest = said[-1]
    # An evaluation may take any time, but the watchdog sees each of its batches. A checkpoint has a limit of its own.
    if newest["event"] in _NO_STEPS or (newest["event"] == "saving" and now - newest["time"] <= view.stall_timeout):
        return None
    usual = _usual(view, said)
    # An event after the last step, such as a completed evaluation, is also a sign of life.
    quiet = now - (number(newest["time"]) or 0.0)
    return usual if quiet > max(LATE_SECONDS, LATE_INTERVALS * usual) else None


def _usual(view: View, said: list[Event]) -> float:
    """Return the usual seconds between two step lines.

    Steps and speed of the last lines give it, including an evaluation between two lines. A run with one line or without
    a speed uses its `report_every`, else a third of its watchdog's limit.
    """
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
