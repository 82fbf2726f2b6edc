"""The first difference between two values, as short text for a report."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ..core.plan import MISSING

SHORT = 80
"""Limit of the characters of a value in a report."""

NAMES = {None: MISSING, "absent": MISSING, True: "yes", False: "no", "": "empty"}


def difference(before: Any, after: Any) -> tuple[str, str]:
    """Return the first place in which two values differ, for each side, and the number of further places."""
    if isinstance(before, list) and isinstance(after, list):
        gone, new = _lines(before, after)
        return _first(gone), _first(new)
    if isinstance(before, dict) and isinstance(after, dict):
        places = list(_places(before, after, ""))
        if places:
            (path, old, new), more = places[0], f" (+{len(places) - 1} more)" if len(places) > 1 else ""
            olds, news = difference(old, new) if isinstance(old, list) and isinstance(new, list) else (_s(old), _s(new))
            # The text of a file needs no label.
            place = "" if path == "text" else f"{path}: "
            return short(f"{place}{olds}"), short(f"{place}{news}{more}")
    return _s(before), _s("there") if before in (None, "absent") and isinstance(after, (dict, list)) else _s(after)


def _lines(before: list[Any], after: list[Any]) -> tuple[list[str], list[str]]:
    """Return the lines that only one side has, in their order. If only the order differs, return the first difference.

    Lines are counted and not compared pairwise, as a host may send a hundred thousand similar lines.
    """
    olds, news = [_s(each) for each in before], [_s(each) for each in after]
    gone, new = _only(olds, news), _only(news, olds)
    if gone or new:
        return gone, new
    return next(([old], [now]) for old, now in zip(olds, news, strict=True) if old != now) if olds != news else ([], [])


def _only(lines: list[str], others: list[str]) -> list[str]:
    left, found = Counter(others), []
    for line in lines:
        left[line] -= 1
        if left[line] < 0:
            found.append(line)
    return found


def _first(lines: list[str]) -> str:
    full = [line for line in lines if line.strip()] or lines
    return short(full[0].strip()) + (f" (+{len(lines) - 1} lines)" if len(lines) > 1 else "") if full else "-"


def _places(before: Any, after: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    for key in dict.fromkeys([*before, *after]):
        old, new = before.get(key), after.get(key)
        below = f"{path}.{key}" if path else str(key)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _places(old, new, below)
        elif old != new:
            yield below, old, new


def _s(value: Any) -> str:
    if isinstance(value, (str, bool, type(None))):
        return short(NAMES.get(value, str(value)))
    return short(json.dumps(value) if isinstance(value, (dict, list)) else str(value))


def short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= SHORT else text[: SHORT - 1] + "…"
