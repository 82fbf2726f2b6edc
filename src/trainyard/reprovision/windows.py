"""Windows of wall time in which a converge may begin, and the check that it fits into an open one.

A window opens at `from` on each of its days and closes at the next `to`. If `to` is not later than `from`, it is on
the following day. If the clock is set forward, a skipped time means the moment of the change. If the clock is set
back, a repeated time means the first of the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from math import inf
from statistics import median
from typing import Any
from zoneinfo import ZoneInfo

from ..core.errors import TrainyardError

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
LAST_RUNS = 10
"""Number of runs whose median estimates the duration of the next one."""

_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")


@dataclass(frozen=True)
class Window:
    """A weekly window.

    :param days: days on which it opens; 0 is Monday.
    :param opens: wall time in `zone`.
    :param closes: wall time in `zone`.
    """

    days: frozenset[int]
    opens: time
    closes: time
    zone: ZoneInfo

    def spans(self, now: datetime) -> list[tuple[datetime, datetime]]:
        """Return the open spans in UTC of the days around a moment, without empty spans."""
        today = now.astimezone(self.zone).date()
        found = []
        for shift in (-2, -1, 0, 1, 2):
            day = today + timedelta(days=shift)
            if day.weekday() in self.days:
                last = day + timedelta(days=1 if self.closes <= self.opens else 0)
                span = (
                    _instant(datetime.combine(day, self.opens), self.zone),
                    _instant(datetime.combine(last, self.closes), self.zone),
                )
                found += [span] if span[0] < span[1] else []
        return found


def parse(entry: Mapping[str, Any]) -> Window:
    """Return the window of an inventory entry with days, from, to and zone.

    :raises TrainyardError: a key is missing, unknown or invalid.
    """
    strange = sorted(set(entry) - {"days", "from", "to", "zone"})
    if strange:
        raise TrainyardError(
            f"a window has the unknown key {', '.join(strange)}", remedy="Use days, from, to and zone."
        )
    days = entry.get("days", list(DAYS))
    if not isinstance(days, list) or not days or not {str(day) for day in days} <= set(DAYS):
        raise TrainyardError(f"days is {days}, not a list of {', '.join(DAYS)}", remedy="Use only these names.")
    name = str(entry.get("zone") or "UTC")
    try:
        zone = ZoneInfo(name)
    except (OSError, ValueError, KeyError) as error:
        # KeyError: an unknown name. The others: the name of a folder, or a path out of the database.
        raise TrainyardError(
            f"zone is {name}, which is unknown on this machine", remedy="Use a name such as Europe/Berlin, or UTC."
        ) from error
    opens, closes = _time(entry, "from"), _time(entry, "to")
    if opens == closes:
        raise TrainyardError(
            f"from and to are both {opens:%H:%M}: the window never opens, or never closes",
            remedy="Set different times, or remove all windows to allow a converge at any time.",
        )
    return Window(frozenset(DAYS.index(day) for day in days), opens, closes, zone)


def overlapping(windows: Sequence[Window], now: datetime) -> tuple[int, int] | None:
    """Return the indexes of the first two windows that overlap in the two weeks after a moment; None without any.

    The end of overlapping windows is ambiguous.
    """
    for first, one in enumerate(windows):
        for second in range(first + 1, len(windows)):
            for day in range(15):
                then = now + timedelta(days=day)
                pairs = ((a, b) for a in one.spans(then) for b in windows[second].spans(then))
                if any(a[0] < b[1] and b[0] < a[1] for a, b in pairs):
                    return first, second
    return None


def rest(windows: Iterable[Window], now: datetime) -> float:
    """Return the seconds until no window is open: 0 outside all windows, infinite without any window.

    Adjacent windows count as one.

    :param now: with a time zone.
    """
    listed = list(windows)
    if not listed:
        return inf
    end = now
    spans = sorted(span for window in listed for day in range(3) for span in window.spans(now + timedelta(days=day)))
    for opens, closes in spans:
        if opens <= end < closes:
            end = closes
    return (end - now).total_seconds()


def next_opening(windows: Iterable[Window], now: datetime) -> datetime | None:
    """Return when the next window opens after a moment, in UTC; None without any window."""
    listed = list(windows)
    days = (now + timedelta(days=day) for day in range(15))
    return min((a for day in days for window in listed for a, _ in window.spans(day) if a > now), default=None)


def why_not(windows: Sequence[Window], now: datetime, seconds: Sequence[float]) -> str:
    """Return why a converge may not begin now and becomes a report, as a clause; empty if it may begin.

    :param seconds: durations of the past converges, the newest last; only the last ten count.
    """
    left = rest(windows, now)
    if left == 0:
        opening = next_opening(windows, now)
        return f"outside the windows; the next opens at {opening:%Y-%m-%d %H:%M} UTC" if opening else "no window opens"
    usual = median(seconds[-LAST_RUNS:]) if seconds else 0.0
    if usual > left:
        return f"the window ends in {left:.0f} s, and half of the last runs took more than {usual:.0f} s"
    return ""


def _time(entry: Mapping[str, Any], key: str) -> time:
    found = _TIME.fullmatch(str(entry.get(key, "")))
    if not found:
        raise TrainyardError(f"{key} is {entry.get(key)!r}, not a time", remedy='Write it as "03:10", with quotes.')
    return time(int(found[1]), int(found[2]))


def _instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return a wall time in UTC; for a skipped wall time, the moment of the change."""
    early = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if early.astimezone(zone).replace(tzinfo=None) == wall:
        return early
    # In the gap fold=0 uses the offset from before the change and gives a later moment; fold=1 an earlier one.
    before, after = wall.replace(tzinfo=zone, fold=1).astimezone(UTC), early
    old = before.astimezone(zone).utcoffset()
    while after - before > timedelta(seconds=1):
        middle = before + (after - before) // 2
        before, after = (middle, after) if middle.astimezone(zone).utcoffset() == old else (before, middle)
    return after.replace(microsecond=0)
