"""The curves of a run: points from the lines of its chief, and their drawing where no script draws them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...core.untrusted import number

Points = list[list[float]]
"""Pairs of step and value, steps rising."""
TITLES = {"loss": "Loss", "accuracy": "Accuracy", "steps_per_second": "Steps per second"}
"""What is drawn."""
TAGS = {"loss": "train", "accuracy": "eval", "steps_per_second": "train"}
"""What is drawn -> the part of a run's events that TensorBoard has it in."""
OF_EVENT = {"loss": "step", "accuracy": "evaluate", "steps_per_second": "step"}
"""What is drawn -> the event of the chief that says it."""
SIZE = (600, 200)
"""Of the drawing, in its own units."""
_RUN = re.compile(r"(?:(?P<run>[^/]+)/)?attempts/(?P<attempt>[^/]+)/(?P<part>train|eval)")


def points(said: Iterable[Mapping[str, Any]], tag: str) -> Points:
    """What a chief has said, in the order of its lines. Steps that it did again, from a checkpoint, count once: the
    later line is right, and what was behind it is of a life that is gone."""
    found: Points = []
    for event in said:
        step, value = event.get("step"), event.get(tag)
        if event["event"] != OF_EVENT[tag] or not isinstance(step, int) or not isinstance(value, int | float):
            continue
        while found and found[-1][0] >= step:
            found.pop()
        found.append([step, value])
    return found


def drawing(found: Points, bound: float | None = None) -> dict[str, Any] | None:
    """Path of a curve in `SIZE`, the least and the greatest value with their steps, and the height of the bound."""
    if not found:
        return None
    width, height = SIZE
    values = [value for _, value in found] + ([bound] if bound else [])
    low, high, first, last = min(values), max(values), found[0][0], found[-1][0]

    def place(step: float, value: float) -> str:
        across = width * (step - first) / ((last - first) or 1)
        return f"{across:.1f},{_down(value, low, high, height):.1f}"

    path = "M" + " L".join(place(*each) for each in found)
    at = f"{_down(bound, low, high, height):.1f}" if bound else None
    return {"path": path, "low": low, "high": high, "first": first, "last": last, "bound": at}


def _down(value: float, low: float, high: float, height: float) -> float:
    """From above; a little is left free at both ends."""
    return height * (0.95 - 0.9 * (value - low) / ((high - low) or 1))


def attempts(boards: Sequence[str], run: str) -> dict[str, list[tuple[str, str]]]:
    """Attempts at a run that TensorBoard has -> the pairs of TensorBoard's run and tag in which their curves are.

    :param boards: its answer to `/data/runs`.
    :param run: on a claim that several share, each has a folder of its name; on its own claim it has none.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for board in boards:
        seen = _RUN.fullmatch(str(board))
        if seen and seen["run"] in (None, run):
            tags = [tag for tag, part in TAGS.items() if part == seen["part"]]
            found.setdefault(seen["attempt"], []).extend((board, tag) for tag in tags)
    return dict(sorted(found.items()))


def of_board(scalars: object) -> Points:
    """The points in TensorBoard's answer to `/data/plugin/scalars/scalars`, triples of time, step and value; none where
    it has another shape."""
    if not isinstance(scalars, list):
        return []
    rows = [row for row in scalars if isinstance(row, list) and len(row) == 3]
    found: Points = []
    for row in rows:
        time, step, value = (None if isinstance(each, str) else number(each) for each in row)
        if time is None or step is None or value is None:
            continue
        while found and found[-1][0] >= step:
            found.pop()
        found.append([step, value])
    return found
