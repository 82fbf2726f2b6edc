"""The timer's calendar expression and delay, in the syntax of systemd."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from subprocess import CompletedProcess

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
