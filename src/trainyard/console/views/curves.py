"""The curves of a run: points from the chief's log, and a drawing for browsers without scripts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...core.untrusted import number

Points = list[list[float]]
"""Pairs of step and value, with increasing steps."""
TITLES = {"loss": "Loss", "accuracy": "Accuracy", "steps_per_second": "Steps per second"}
"""Tag of a curve -> title."""
TAGS = {"loss": "train", "accuracy": "eval", "steps_per_second": "train"}
"""Tag of a curve -> part of a run's events in TensorBoard that contains it."""
OF_EVENT = {"loss": "step", "accuracy": "evaluate", "steps_per_second": "step"}
"""Tag of a curve -> event of the chief that contains it."""
SIZE = (600, 200)
"""Width and height of the drawing, in its own units."""
_RUN = re.compile(r"(?:(?P<run>[^/]+)/)?attempts/(?P<attempt>[^/]+)/(?P<part>train|eval)")


def points(said: Iterable[Mapping[str, Any]], tag: str) -> Points:
    """Return the points of a chief's events, in the order of its lines.

    If steps are repeated from a checkpoint, the later line replaces the earlier points from its step on.
    """
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
    """Return the path of a curve in `SIZE`, lowest and highest value, first and last step, and the bound's height."""
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
    """Return the distance from the top, with a margin of 5 % at both ends."""
    return height * (0.95 - 0.9 * (value - low) / ((high - low) or 1))


def attempts(boards: Sequence[str], run: str) -> dict[str, list[tuple[str, str]]]:
    """Return attempt -> pairs of TensorBoard's run and tag that contain its curves.

    :param boards: answer of TensorBoard to `/data/runs`.
    :param run: name of the run, which is its folder on a shared claim; on its own claim a run has no such folder.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for board in boards:
        seen = _RUN.fullmatch(str(board))
        if seen and seen["run"] in (None, run):
            tags = [tag for tag, part in TAGS.items() if part == seen["part"]]
            found.setdefault(seen["attempt"], []).extend((board, tag) for tag in tags)
    return dict(sorted(found.items()))


def of_board(scalars: object) -> Points:
    """Return the points of TensorBoard's answer to `/data/plugin/scalars/scalars`, triples of time, step and value.

    An answer of another shape gives none.
    """
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
