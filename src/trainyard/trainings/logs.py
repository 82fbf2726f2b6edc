"""Events in the logs of a training's processes: the chief's JSON lines, and the attempts of the isolation probe."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from ..kube.pod_log import last_state
from .model import Success

Event = dict[str, Any]
SUCCESSES = ("passed", "no_bound")
"""Results of a run that need nothing more."""
DEVICE_FIELDS = ("compute", "gpu_allocated")
"""What a run says of its devices: `gpu` or `cpu`, and how many GPUs its pods were given."""
ERROR_RATES = ("character_error_rate", "word_error_rate")
"""What trainings of speech say beside their accuracy, which is 1 less the first."""
_TEXTS = ("event", "result", "compute")
_WHOLE = ("step", "steps_total", "gpu_allocated", "accuracy_step")
_NUMBERS = ("time", "loss", "steps_per_second", "seconds", "accuracy", *ERROR_RATES)
"""Types of the fields that we look at, by name. None stands for what is not known."""
_LARGEST = 1e300
"""Whole numbers of JSON have no limit, and none beyond this can be shown as a fraction."""
_RATES = ("steps_per_second", "seconds")
"""Fields that times are made of. A loss may be infinite or no number, and says something then; these may not."""
LAST_TIME = 253_402_300_800.0
"""The year 10000 in seconds since the epoch: no later time can be written."""
EVENT_BYTES = 2**20
"""Of the line of an event; a longer one is passed over unread."""
_BLANK = " \t\x00\x0b\x0c\ufeff"
"""What may lie around an event on its line; JSON itself allows less."""
_BEGINS = 4
"""Places in a bar at which an event is looked for: each try may read all of the rest."""
IN_USE = ("connected", "step", "evaluate")
"""Events of the chief that show that the parameter servers answer it at that moment."""


def events(text: str, key: str = "event") -> list[Event]:
    """The JSON objects among the lines of a log that have `key`; TensorFlow's own lines lie between them.

    A program of a user may write JSON, too: an object in which one of our fields is of another type is none of ours.
    """
    # No other character ends a line, also where Python knows ten of them.
    found = (event_in(line.encode("utf-8", "replace"), key) for line in text.split("\n"))
    return [event for event in found if event is not None]


def event_in(line: bytes, key: str = "event", *, cut: bool = False) -> Event | None:
    """The event of one line; None where it has none, or is too long for one.

    Of a line that overwrites itself, a progress bar, the last state counts. The event may follow a bar that did not end
    its line: there it begins behind the bar.

    :param cut: whether the begin of the line is missing; a later state is whole all the same.
    """
    state = last_state(line)
    over = b"\r" in line.rstrip(b"\r")
    if len(state) > EVENT_BYTES or (cut and not over):
        return None
    text = state.decode("utf-8", "replace").strip(_BLANK)
    begins = _objects(text) if over else [0] if text.startswith("{") else []
    for begin in begins:
        try:
            event = json.loads(text[begin:])
        except (ValueError, RecursionError):  # cut off by the end of what was read, or nested without end
            continue
        if isinstance(event, dict) and key in event and all(is_ours(name, event[name]) for name in event):
            return event
    return None


def _objects(text: str) -> list[int]:
    """Where objects of JSON may begin in a bar; the first of them."""
    return [match.start() for match in islice(re.finditer(r'\{\s*"', text), _BEGINS)]


def is_ours(name: str, value: Any) -> bool:
    """Whether a field is what our programs write, so that it can be compared and shown; others may be anything."""
    if name in _TEXTS:
        return isinstance(value, str) or (value is None and name != "event")
    if name in _WHOLE or name in _NUMBERS:
        kinds = int if name in _WHOLE else (int, float)
        number = isinstance(value, kinds) and not isinstance(value, bool) and not abs(value) > _LARGEST
        if number and name in _RATES:
            return math.isfinite(value)
        if number and name == "time":
            return bool(0 <= value < LAST_TIME)
        return number or (value is None and name != "time")
    return True


def last(found: Sequence[Event], kind: str) -> Event:
    """The last event of a kind; empty if there is none."""
    return next((event for event in reversed(found) if event["event"] == kind), {})


def devices(found: Sequence[Event]) -> dict[str, Any]:
    """What a run computes on, by the last word of its own about that; empty where it says nothing."""
    known = {name: event[name] for event in found for name in DEVICE_FIELDS if event.get(name) is not None}
    return known if len(known) == len(DEVICE_FIELDS) else {}


def idle_gpus(known: Mapping[str, Any]) -> str:
    """`2 GPUs allocated and not used` where a run had GPUs and computed on the CPU; else empty.

    :param known: with `DEVICE_FIELDS`, where the run has said them.
    """
    count = known.get("gpu_allocated")
    if known.get("compute") != "cpu" or not count:
        return ""
    return f"{count} GPU{'s' if count > 1 else ''} allocated and not used"


def progress_line(step: Event) -> str:
    """`step 400 of 2000, loss 0.3121, 121.4 steps/s`."""
    total = f" of {step['steps_total']}" if step.get("steps_total") else ""
    loss = f", loss {step['loss']:.4f}" if isinstance(step.get("loss"), int | float) else ""
    rate = step.get("steps_per_second")
    return f"step {step.get('step', '?')}{total}{loss}" + (f", {rate:.1f} steps/s" if rate else "")


def isolation(attempts: Sequence[Event], chief: Sequence[Event]) -> dict[str, Any]:
    """Whether a stranger was kept away from the run's port while the training used it.

    :param attempts: the stranger's lines: target, outcome, begin, end (seconds since the epoch).
    :param chief: the chief's events; from the first to the last of `IN_USE` the port was in use, so that a stranger
        who gets no connection was blocked and did not merely find nothing listening.
    :return: `stranger_blocked` true, false, or None when it cannot be said; `detail` in words.
    """
    used = [event["time"] for event in chief if event["event"] in IN_USE and "time" in event]
    targets = [each for each in attempts if each["target"] == "target"]
    if reached := [each for each in targets if each["outcome"] == "connected"]:
        return _evidence(False, f"a pod that is not of the run connected to it at {reached[0]['detail']}")
    answered = [each for each in attempts if each["target"] == "control" and each["outcome"] == "connected"]
    if not answered:
        return _evidence(None, "the stranger reached nothing at all: it did not run, or its network did not work")
    during = [
        each
        for each in targets
        if used and used[0] <= each["begin"] and each["end"] <= used[-1] and each["outcome"] != "unresolved"
    ]
    if not during:
        return _evidence(
            None, "no attempt of the stranger fell into the time in which the port was in use; train longer"
        )
    detail = f"attempts on the port of the run while it was in use, without a connection: {len(during)}"
    return _evidence(True, f"{detail}; connections to the control: {len(answered)}")


def _evidence(blocked: bool | None, detail: str) -> dict[str, Any]:
    return {"stranger_blocked": blocked, "detail": detail}


def outcome(said: Sequence[Event], success: Success) -> tuple[str, str]:
    """The result of a run whose deciding pod has ended with 0.

    :param said: that pod's events; none for a program that writes no lines of ours, which its exit code speaks for.
    :return: `passed`, `no_bound` or `failed`, and why it failed.
    """
    if success.metric:
        values = [event[success.metric] for event in said if isinstance(event.get(success.metric), int | float)]
        if not values or not values[-1] >= success.at_least:
            value = values[-1] if values else "unknown"
            return "failed", f"{success.metric} is {value}, and at least {success.at_least:g} is asked for"
        return "passed", ""
    result = str(last(said, "end").get("result", "passed"))
    return result, "" if result in SUCCESSES else f"it ended without success (result {result})"


def summary(chief: Sequence[Event], flags: Mapping[str, Any]) -> dict[str, Any]:
    """What the chief says of the run: steps, speed, accuracy and result, beside the knobs that it was asked for."""
    end = last(chief, "end")
    step = end or last(chief, "step")
    measured = {**last(chief, "evaluate"), **end}
    # Of a run that ends with its best and not with its last, the accuracy is that of another step.
    judged = [event for event in chief if event["event"] == "evaluate"]
    judged = [event for event in judged if event.get("step") == end.get("accuracy_step", event.get("step"))]
    rates = {name: judged[-1][name] for name in ERROR_RATES if judged and name in judged[-1]}
    return {
        "result": end.get("result", "unknown"),
        "steps": step.get("step", 0),
        "steps_per_second": step.get("steps_per_second"),
        "seconds": end.get("seconds"),
        "accuracy": measured.get("accuracy"),
        "accuracy_bound": flags.get("accuracy_bound", 0),
        **rates,
        "train_steps": flags.get("train_steps"),
        **({"stopped_early": True} if end.get("stopped_early") else {}),
        **devices(chief),
    }
