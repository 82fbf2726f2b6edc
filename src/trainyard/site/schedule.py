"""Times and limits of scheduled runs: the calendar, the windows of a converge, and the number of changes.

Parts: the timer's calendar expression and delay, in the syntax of systemd; the windows; the limits on changes.

A window is wall time in which a converge may begin. A check shows whether the converge fits into an open window. A
window opens at `from` on each of its days and closes at the next `to`. If `to` is not later than `from`, it is on the
following day. If the clock is set forward, a skipped time means the moment of the change. If the clock is set back, a
repeated time means the first of the two.

Limits apply to the changes of a run, to unreachable hosts, and to repairs of one item in a row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from math import inf
from statistics import median
from subprocess import CompletedProcess
from typing import Any
from zoneinfo import ZoneInfo

from ..core.command import run
from ..core.errors import CommandError, TrainyardError

REMEDY = 'Use the syntax of systemd.time(7), for example "*-*-* 03:10:00" for every night.'
SPAN_REMEDY = "Use the syntax of systemd.time(7), for example 15min or 1h 30min."

UNITS = {
    "usec us \u00b5s \u03bcs": 1e-6, "msec ms": 1e-3, "seconds second sec s": 1.0, "minutes minute min m": 60.0,
    "hours hour hr h": 3600.0, "days day d": 86400.0, "weeks week w": 604800.0, "months month M": 2629800.0,
    "years year y": 31557600.0,
}  # fmt: skip
"""Units of a time span -> seconds: systemd.time(7), PARSING TIME SPANS. Unicode has two micro signs."""

_SECONDS = {"": 1.0, **{word: value for words, value in UNITS.items() for word in words.split()}}
# The longest word first, so that "min" does not match as "m".
_PART = re.compile(rf"\s*(\d+(?:\.\d+)?|\.\d+)\s*({'|'.join(sorted(_SECONDS, key=len, reverse=True))})")

_WORDS = ("minutely", "hourly", "daily", "monthly", "weekly", "yearly", "annually", "quarterly", "semiannually")
_DAY = r"(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*"
_NUMBERS = r"(?:\*|\d+)(?:\.\.\d+)?(?:/\d+)?(?:,\d+(?:\.\.\d+)?(?:/\d+)?)*"
_CALENDAR = re.compile(
    rf"(?:{_DAY}(?:(?:\.\.|,){_DAY})*,?\s+)?"
    rf"(?:(?:{_NUMBERS}-)?{_NUMBERS}[-~]{_NUMBERS}\s*)?"
    rf"(?:(?<![\d*]){_NUMBERS}:{_NUMBERS}(?::{_NUMBERS}(?:\.\d+)?)?)?"
    r"(?:\s+(?:UTC|[A-Za-z]+(?:/[A-Za-z_+-]+)*))?",
    re.IGNORECASE,
)
_NEXT = re.compile(r"Next elapse: \S+ (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.\d+)? UTC")


def looks_right(text: str) -> bool:
    """Return whether a text looks like a calendar expression. Only systemd, maybe on another machine, decides."""
    first = text.split(" ")[0].lower()
    return bool(text.strip()) and (first in _WORDS or bool(_CALENDAR.fullmatch(text.strip())))


def next_elapse(schedule: str, after: float, command: Callable[..., CompletedProcess[str]] = run) -> float | None:
    """Return when a schedule is due next after a moment, in seconds since the epoch; None for never again.

    :param after: seconds since the epoch.
    :raises TrainyardError: systemd rejects the schedule, or is missing on this machine.
    """
    base = datetime.fromtimestamp(after, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    argv = ["systemd-analyze", "calendar", f"--base-time={base}", schedule]
    try:
        # There is no machine-readable output. The environment fixes the language and the zone.
        said = command(argv, timeout=10, env={"LC_ALL": "C.UTF-8", "TZ": "UTC"}).stdout
    except CommandError as error:
        raise TrainyardError(
            f"The schedule {schedule} cannot be read by systemd: {error.message}", remedy=REMEDY
        ) from error
    found = _NEXT.search(said)
    return datetime.fromisoformat(f"{found[1]}+00:00").timestamp() if found else None


def seconds(span: str) -> float:
    """Return a time span in seconds.

    :param span: in the syntax of systemd.
    :raises TrainyardError: the span is invalid, or infinite (infinity).
    """
    total, place = 0.0, 0
    while part := _PART.match(span, place):
        total += float(part[1]) * _SECONDS[part[2]]
        place = part.end()
    if not place or span[place:].strip():
        raise TrainyardError(f"{span!r} is not a time span.", remedy=SPAN_REMEDY)
    return total


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


_SHARE = re.compile(r"(\d{1,3})\s*%")


def share(value: str | int, of: int) -> int:
    """Return how many hosts a limit allows: at least one, percentages rounded down.

    :param value: a percentage such as "20%", or a number of hosts.
    :param of: number of hosts that a percentage refers to.
    :raises TrainyardError: the value is 0, above 100 %, or neither form.
    """
    found = _SHARE.fullmatch(str(value).strip())
    if found and 1 <= int(found[1]) <= 100:
        return max(1, of * int(found[1]) // 100)
    if not found and re.fullmatch(r"\d+", str(value).strip()) and int(value) >= 1:
        return int(value)
    raise TrainyardError(
        f"the limit is {value}, neither a share from 1% to 100% nor a number of hosts from 1",
        remedy='Write a share as "20%", with quotes.',
    )


def too_much(*, hosts: int, drifted: Collection[str], items: int, max_hosts: str | int, max_items: int) -> str:
    """Return why a run would change more than the limits allow, as a clause; empty if it would not.

    :param hosts: number of hosts of the site.
    :param drifted: hosts with something to repair, including hosts that are held back.
    :param items: number of items to repair, including the cluster's own.
    """
    allowed = share(max_hosts, hosts)
    if len(drifted) > allowed:
        shown = f"{len(drifted)} of {hosts} hosts have drifted"
        return f"{shown}, and reprovision_max_hosts ({max_hosts}) allows {allowed}"
    if items > max_items:
        return f"there are {items} items to repair, and reprovision_max_items allows {max_items}"
    return ""


def too_many_missing(*, hosts: int, unreachable: Collection[str], max_unreachable: str | int) -> str:
    """Return why too many hosts are unreachable for a converge, as a clause; empty if they are not.

    One host may always be missing, so that a machine in repair does not block the rest of the site.
    """
    allowed = share(max_unreachable, hosts)
    if len(unreachable) <= allowed:
        return ""
    named = ", ".join(sorted(unreachable)[:5])
    return (
        f"{len(unreachable)} of {hosts} hosts do not answer ({named}), and reprovision_max_unreachable "
        f"({max_unreachable}) is {allowed}"
    )


def comes_back(key: str, converges: Sequence[Collection[str]], max_repeats: int) -> bool:
    """Return whether each of the last converges repaired the same item, so that something else must change it back.

    :param converges: the keys that each converge repaired, the newest last; also of converges that ended early.
    :param max_repeats: number of repairs in a row that is too many.
    """
    last = converges[-max_repeats:]
    return len(last) == max_repeats and all(key in repaired for repaired in last)
