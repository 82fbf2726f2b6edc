"""Format numbers, times and states for pages. None means unknown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import quote

NOTHING = "\u2013"
"""Text for an unknown value."""
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
TONES: Mapping[str, str] = {
    "running": "busy", "starting": "busy", "restarting": "wait", "waiting": "wait", "silent": "wait",
    "stopping": "wait", "passed": "good", "no_bound": "good", "finished": "good", "failed": "bad",
    "stopped": "idle", "ended": "idle",
}  # fmt: skip
"""State of a run -> name of its colour."""


def tone(state: str) -> str:
    return TONES.get(state, "idle")


def duration(seconds: float | None) -> str:
    """Format seconds as `45 s`, `2 min 10 s`, `3 h 5 min`: at most two units, the second omitted if it is 0."""
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    rest = max(0, round(seconds))
    for place, (size, name) in enumerate(_UNITS):
        if rest >= size or size == 1:
            more, after = _UNITS[min(place + 1, len(_UNITS) - 1)], rest % size
            small = f" {after // more[0]} {more[1]}" if size > 1 and after // more[0] else ""
            return f"{rest // size} {name}{small}"
    raise AssertionError("the last unit takes everything")


def about(seconds: float | None) -> str:
    """Format an estimated duration in the largest unit that it contains at least twice."""
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    for size, name in _UNITS:
        if seconds >= 2 * size or size == 1:
            return f"{round(seconds / size)} {name}"
    raise AssertionError("the last unit takes everything")


def whole(value: float | None) -> str:
    """Format a whole number: `12,000`."""
    return NOTHING if value is None else f"{value:,.0f}"


def number(value: float | None, digits: int = 4) -> str:
    """Format a measured value with a number of significant digits."""
    return NOTHING if value is None else f"{value:,.{digits}g}" if abs(value) < 10**digits else f"{value:,.0f}"


def percent(share: float | None, digits: int = 1) -> str:
    """Format a share of 1 in percent."""
    return NOTHING if share is None else f"{100 * share:.{digits}f} %"


def size(count: float | None) -> str:
    """Format bytes: `3.2 GiB`."""
    if count is None:
        return NOTHING
    for power, name in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if abs(count) >= 1024**power:
            return f"{count / 1024**power:.1f} {name}"
    return f"{count:.0f} B"


def moment(text: object) -> datetime | None:
    """Parse a time in the cluster's format, or seconds since the epoch; None if it is neither."""
    try:
        if isinstance(text, int | float):
            return datetime.fromtimestamp(text, UTC)
        found = datetime.fromisoformat(str(text))
    except (ValueError, OverflowError, OSError):
        return None
    return found.replace(tzinfo=found.tzinfo or UTC)


def ago(text: object, now: datetime) -> float | None:
    """Return the seconds since a time."""
    then = moment(text)
    return None if then is None else max(0.0, (now - then).total_seconds())


def clock(text: object) -> str:
    """Format a time: `2026-11-22 12:05:00 UTC`."""
    then = moment(text)
    return NOTHING if then is None else f"{then.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def link(*parts: str) -> str:
    """Return a path of the console from its parts."""
    return "/" + "/".join(quote(part, safe="") for part in parts)


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
