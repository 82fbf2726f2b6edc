"""Events in the logs of a run's pods: the JSON lines of the chief, and the attempts of the isolation probe."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from ..core.untrusted import line as one_line
from ..core.untrusted import number, whole
from ..kube.pod_log import last_state
from .model import Success

Event = dict[str, Any]
SUCCESSES = ("passed", "no_bound")
"""Results of a run that need no further action."""
DEVICE_FIELDS = ("compute", "gpu_allocated")
"""Fields in which a run reports its devices: `gpu` or `cpu`, and the number of GPUs allocated to its pods."""
ERROR_RATES = ("character_error_rate", "word_error_rate")
"""Fields that speech trainings report in addition to their accuracy, which is 1 minus the first."""
_TEXTS = ("event", "result", "compute")
_WHOLE = ("step", "steps_total", "gpu_allocated", "accuracy_step")
_NUMBERS = ("time", "loss", "steps_per_second", "seconds", "accuracy", *ERROR_RATES)
"""The fields that we read, by type. None means unknown."""
_LARGEST = 1e300
"""Limit of numbers. Integers in JSON are unlimited, and larger ones cannot be shown as fractions."""
_RATES = ("steps_per_second", "seconds")
"""Fields from which times are computed: they must be finite. A loss may be infinite or NaN, which is informative."""
LAST_TIME = 253_402_300_800.0
"""The year 10000 in seconds since the epoch: no later time can be formatted."""
EVENT_BYTES = 2**20
"""Maximum bytes of the line of an event; longer lines are skipped."""
_BLANK = " \t\x00\x0b\x0c\ufeff"
"""Characters that may surround an event on its line; JSON itself allows fewer."""
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "infinity": math.inf, "-inf": -math.inf, "-infinity": -math.inf}
"""Texts of numbers that a diverged loss has."""
_SHOWN = 60
"""Characters of a refused value that a message quotes."""
_BEGINS = 4
"""Maximum number of positions in a progress bar that are tried, because each try may read the whole rest."""
IN_USE = ("connected", "step", "evaluate")
"""Events of the chief that show that the parameter servers answer it at this time."""


def events(text: str, key: str = "event") -> list[Event]:
    """Return the JSON objects with `key` among the lines of a log, which also has TensorFlow's own lines.

    A user's program may also write JSON. An object in which one of our fields has another type is not an event.
    """
    # Only \n ends a line; `str.splitlines` would split at ten characters.
    found = (event_in(line.encode("utf-8", "replace"), key) for line in text.split("\n"))
    return [event for event in found if event is not None]


def event_in(line: bytes, key: str = "event", *, cut: bool = False) -> Event | None:
    """Return the event of one line; None if it has none, is too long, or a field has another type; see `heard_in`."""
    return heard_in(line, key, cut=cut)[0]


def heard_in(line: bytes, key: str = "event", *, cut: bool = False) -> tuple[Event | None, str]:
    """Return the event of one line, with our fields as numbers, and why it is refused.

    For a line that overwrites itself (a progress bar), the last state counts. If the bar did not end its line, the
    event begins after the bar.

    :param cut: whether the beginning of the line is missing; a later state of an overwritten line is still complete.
    :return: None and a reason such as `accuracy is 'good', not a number`; None and no text for a line without an event.
    """
    state = last_state(line)
    over = b"\r" in line.rstrip(b"\r")
    if len(state) > EVENT_BYTES or (cut and not over):
        return None, ""
    text = state.decode("utf-8", "replace").strip(_BLANK)
    begins = _objects(text) if over else [0] if text.startswith("{") else []
    refused = ""
    for begin in begins:
        try:
            event = json.loads(text[begin:])
        except (ValueError, RecursionError):  # cut off at the end of the text, or nested too deeply
            continue
        if not (isinstance(event, dict) and key in event):
            continue
        event = {name: _plain(name, value) for name, value in event.items()}
        wrong = next((name for name in event if not is_ours(name, event[name])), "")
        if not wrong:
            return event, ""
        refused = f"{wrong} is {one_line(repr(event[wrong]), _SHOWN)}, not {_wanted(wrong)}"
    return None, refused


def _objects(text: str) -> list[int]:
    """Return the first positions in a progress bar at which a JSON object may begin."""
    return [match.start() for match in islice(re.finditer(r'\{\s*"', text), _BEGINS)]


def _plain(name: str, value: Any) -> Any:
    """Return a number for a number in text (`"0.97"`), and a whole number for a whole fraction (10.0), in our fields.

    Programs that format their values, or read them from an array, write them like this.
    """
    if name not in _WHOLE and name not in _NUMBERS:
        return value
    if isinstance(value, str) and (found := number_in(value)) is not None:
        value = found
    if name in _WHOLE and isinstance(value, float) and value.is_integer():
        found = whole(f"{value:.0f}")
        return value if found is None else found
    return value


def number_in(text: str) -> float | None:
    """Return the number that a text consists of (`0.97`, `-1e-3`, `nan`); None for any other text."""
    return _NOT_FINITE.get(text.strip().lower(), number(text))


def _wanted(name: str) -> str:
    if name in _TEXTS:
        return "a text"
    if name in _WHOLE:
        return "a whole number"
    return "a time in seconds since 1970" if name == "time" else "a number"


def is_ours(name: str, value: Any) -> bool:
    """Return whether a field has the type that our programs write, so that it can be compared and shown.

    Fields with other names may have any value.
    """
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
    """Return the last event of a kind; empty if there is none."""
    return next((event for event in reversed(found) if event["event"] == kind), {})


def devices(found: Sequence[Event]) -> dict[str, Any]:
    """Return the devices that a run has last reported; empty if it has reported none."""
    known = {name: event[name] for event in found for name in DEVICE_FIELDS if event.get(name) is not None}
    return known if len(known) == len(DEVICE_FIELDS) else {}


def idle_gpus(known: Mapping[str, Any]) -> str:
    """Return `2 GPUs allocated and not used` if a run had GPUs and computed on the CPU; else empty.

    :param known: has `DEVICE_FIELDS` if the run has reported them.
    """
    count = known.get("gpu_allocated")
    if known.get("compute") != "cpu" or not count:
        return ""
    return f"{count} GPU{'s' if count > 1 else ''} allocated and not used"


def progress_line(step: Event) -> str:
    """Return the progress as text: `step 400 of 2000, loss 0.3121, 121.4 steps/s`."""
    total = f" of {step['steps_total']}" if step.get("steps_total") else ""
    loss = f", loss {step['loss']:.4f}" if isinstance(step.get("loss"), int | float) else ""
    rate = step.get("steps_per_second")
    return f"step {step.get('step', '?')}{total}{loss}" + (f", {rate:.1f} steps/s" if rate else "")


def isolation(attempts: Sequence[Event], chief: Sequence[Event]) -> dict[str, Any]:
    """Return evidence of the isolation probe: whether it was blocked while the training used the run's port.

    :param attempts: the probe's lines: target, outcome, begin, end (seconds since the epoch).
    :param chief: the chief's events. From the first to the last of `IN_USE` the port was in use. A probe without a
        connection was then blocked, and did not merely find a closed port.
    :return: `stranger_blocked` is true, false, or None if unknown; `detail` gives the reason.
    """
    used = [event["time"] for event in chief if event["event"] in IN_USE and "time" in event]
    targets = [each for each in attempts if each["target"] == "target"]
    if reached := [each for each in targets if each["outcome"] == "connected"]:
        return evidence(False, f"a pod outside the run connected to it at {reached[0]['detail']}")
    answered = [each for each in attempts if each["target"] == "control" and each["outcome"] == "connected"]
    if not answered:
        return evidence(None, "the isolation probe reached nothing: it did not run, or its network did not work")
    during = [
        each
        for each in targets
        if used and used[0] <= each["begin"] and each["end"] <= used[-1] and each["outcome"] != "unresolved"
    ]
    if not during:
        return evidence(None, "the isolation probe made no attempt while the port was in use; train longer")
    detail = f"attempts on the port of the run while it was in use, without a connection: {len(during)}"
    return evidence(True, f"{detail}; connections to the control: {len(answered)}")


def evidence(blocked: bool | None, detail: str) -> dict[str, Any]:
    """Return the evidence of an isolation probe in the form of a record; `blocked` is None if it is unknown."""
    return {"stranger_blocked": blocked, "detail": detail}


def _metric(value: Any) -> float | None:
    """Return the value of a field as a number; None if it is none."""
    if isinstance(value, str):
        return number_in(value)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def outcome(said: Sequence[Event], success: Success) -> tuple[str, str]:
    """Return the result of a run whose deciding pod has exited with 0.

    :param said: that pod's events; empty for a program that writes none, for which the exit code alone counts.
    :return: `passed`, `no_bound` or `failed`, and why it failed.
    """
    if success.metric:
        values = [value for event in said if (value := _metric(event.get(success.metric))) is not None]
        return ("passed", "") if values and success.holds(values[-1]) else ("failed", success.missed(values))
    result = str(last(said, "end").get("result", "passed"))
    return result, "" if result in SUCCESSES else f"it ended without success (result {result})"


def summary(chief: Sequence[Event], flags: Mapping[str, Any]) -> dict[str, Any]:
    """Summarise the chief's report of the run: steps, speed, accuracy and result, with the requested values."""
    end = last(chief, "end")
    step = end or last(chief, "step")
    measured = {**last(chief, "evaluate"), **end}
    # A run that ends with its best checkpoint instead of its last reports the accuracy of an earlier step.
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
