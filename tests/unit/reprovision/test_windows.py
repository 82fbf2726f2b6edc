"""Windows over midnight, in two time zones and over both changes of the clock; the rest of one; what fits into it."""

from __future__ import annotations

from datetime import datetime
from math import inf
from typing import Any

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.site import schedule
from trainyard.site.schedule import looks_right, next_elapse

NEW_YORK = "America/New_York"
NIGHT = {"days": ["mon", "tue"], "from": "01:00", "to": "05:00", "zone": "Europe/Berlin"}


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def window(
    opens: str, closes: str, zone: str = "Europe/Berlin", days: tuple[str, ...] = schedule.DAYS
) -> dict[str, Any]:
    return {"days": list(days), "from": opens, "to": closes, "zone": zone}


LATE = window("22:00", "04:00", days=("mon",))


@pytest.mark.parametrize(
    ("entries", "now", "seconds"),
    [
        pytest.param([], "2027-03-01T12:00Z", inf, id="no window, no limit"),
        # 1 March 2027 is a Monday; Berlin is one hour ahead of UTC.
        pytest.param([NIGHT], "2027-03-01T00:00Z", 4 * 3600, id="at its first second"),
        pytest.param([NIGHT], "2027-02-28T23:59:59Z", 0, id="the second before"),
        pytest.param([NIGHT], "2027-03-01T03:59Z", 60, id="a minute is left"),
        pytest.param([NIGHT], "2027-03-01T04:00Z", 0, id="its end is outside"),
        pytest.param([NIGHT], "2027-03-03T01:00Z", 0, id="not on a Wednesday"),
        pytest.param([NIGHT], "2027-03-01T20:00:00-05:00", 3 * 3600, id="asked from another zone"),
        pytest.param([LATE], "2027-03-02T02:00Z", 3600, id="over midnight"),
        pytest.param([LATE], "2027-03-01T02:00Z", 0, id="not the night before"),
        pytest.param([window("23:00", "04:00", NEW_YORK)], "2027-03-01T04:00Z", 5 * 3600, id="New York"),
        pytest.param([NIGHT, window("05:00", "06:00")], "2027-03-01T03:00Z", 2 * 3600, id="two in a row"),
        pytest.param([NIGHT, window("05:30", "06:00")], "2027-03-01T03:00Z", 3600, id="two with a gap"),
        # 28 March 2027: 02:00 becomes 03:00 in Berlin, at 01:00 UTC.
        pytest.param([window("01:00", "05:00")], "2027-03-28T00:00Z", 3 * 3600, id="spring: an hour shorter"),
        pytest.param([window("02:30", "04:00")], "2027-03-28T00:59:59Z", 0, id="spring: not before the change"),
        pytest.param([window("02:30", "04:00")], "2027-03-28T01:00Z", 3600, id="spring: opens at the change"),
        pytest.param([window("01:00", "02:30")], "2027-03-28T00:30Z", 1800, id="spring: closes at the change"),
        pytest.param([window("02:15", "02:45")], "2027-03-28T01:00Z", 0, id="spring: no such window"),
        # 31 October 2027: 03:00 becomes 02:00 in Berlin, at 01:00 UTC.
        pytest.param([window("01:00", "05:00")], "2027-10-30T23:00Z", 5 * 3600, id="autumn: an hour longer"),
        pytest.param([window("01:00", "02:30")], "2027-10-31T00:00Z", 1800, id="autumn: first 02:30 closes"),
        pytest.param([window("01:00", "02:30")], "2027-10-31T01:15Z", 0, id="autumn: shut at the second 02:15"),
        pytest.param([window("02:30", "04:00")], "2027-10-31T00:30Z", 2.5 * 3600, id="autumn: first 02:30 opens"),
        # New York changes on 14 March 2027, at 07:00 UTC, while Berlin does not.
        pytest.param([window("01:00", "04:00", NEW_YORK)], "2027-03-14T06:00Z", 2 * 3600, id="New York, spring"),
    ],
)  # fmt: skip
def test_the_rest_of_a_window(entries: list[dict[str, Any]], now: str, seconds: float) -> None:
    assert schedule.rest([schedule.parse(entry) for entry in entries], at(now)) == seconds


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"from": "25:00"}, "from is '25:00'"),
        ({"to": 300}, "to is 300"),
        ({"to": "01:00"}, "never opens"),
        ({"days": []}, "days is []"),
        ({"days": ["monday"]}, "days is ['monday']"),
        ({"days": "mon"}, "days is mon"),
        ({"zone": "Europe/Nowhere"}, "zone is Europe/Nowhere"),
        ({"zone": "Europe"}, "zone is Europe"),
        ({"zone": "../etc/passwd"}, "zone is ../etc/passwd"),
        ({"until": "05:00"}, "a window has the unknown key until"),
    ],
)
def test_a_window_that_cannot_be(change: dict[str, Any], said: str) -> None:
    with pytest.raises(TrainyardError) as caught:
        schedule.parse(NIGHT | change)
    assert said in caught.value.message
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([NIGHT, window("05:00", "06:00")], None),
        ([NIGHT, window("04:59", "06:00")], (0, 1)),
        ([NIGHT, window("04:00", "05:00", days=("wed",))], None),
        # The same hours of the day, and of others in UTC.
        ([NIGHT, window("01:00", "05:00", NEW_YORK)], None),
        ([NIGHT, window("06:00", "07:00"), window("22:00", "02:00", NEW_YORK, ("sun",))], (0, 2)),
        ([window("22:00", "04:00", days=("sun",)), window("03:00", "05:00", days=("mon",))], (0, 1)),
    ],
)
def test_windows_that_overlap(entries: list[dict[str, Any]], expected: tuple[int, int] | None) -> None:
    parsed = [schedule.parse(entry) for entry in entries]
    assert schedule.overlapping(parsed, at("2027-03-04T12:00Z")) == expected


HOUR_LEFT = "2027-03-01T03:00Z"


@pytest.mark.parametrize(
    ("entries", "now", "seconds", "said"),
    [
        ([], HOUR_LEFT, [9e9], ""),
        ([NIGHT], HOUR_LEFT, [], ""),
        ([NIGHT], HOUR_LEFT, [3600.0], ""),
        ([NIGHT], HOUR_LEFT, [3601.0], "the window ends in 3600 s"),
        # Of twelve runs the first two do not count: six of ten were short.
        ([NIGHT], HOUR_LEFT, [9e3] * 2 + [9e3] * 4 + [60.0] * 6, ""),
        ([NIGHT], HOUR_LEFT, [60.0] * 2 + [60.0] * 4 + [9e3] * 6, "half of the last runs took more"),
        ([NIGHT], "2027-03-03T01:00Z", [], "the next opens at 2027-03-08 00:00 UTC"),
    ],
)  # fmt: skip
def test_when_a_converge_is_a_report(entries: list[dict[str, Any]], now: str, seconds: list[float], said: str) -> None:
    found = schedule.why_not([schedule.parse(entry) for entry in entries], at(now), seconds)
    assert said in found if said else found == ""


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("*-*-* 03:10:00", True),
        ("*-*-* *:*:0/10", True),
        ("Mon..Fri 22:30", True),
        ("sat,sun *-*-* 04:00 Europe/Berlin", True),
        ("*:0/15", True),
        ("daily", True),
        ("hourly UTC", True),
        ("", False),
        ("every night", False),
        ("0 3 * * *", False),
        ("03:10; reboot", False),
        ("*-*-* 3.10", False),
    ],
)
def test_the_shape_of_a_schedule(text: str, right: bool) -> None:
    assert looks_right(text) is right


def test_systemd_says_when_a_schedule_is_due() -> None:
    base = at("2027-03-04T02:10Z").timestamp()
    assert next_elapse("*-*-* 03:10:00", base) == base + 3600
    assert next_elapse("*-*-* 03:10:00 Europe/Berlin", base) == base + 24 * 3600
    assert next_elapse("2020-01-01", base) is None
    with pytest.raises(TrainyardError, match="every night"):
        next_elapse("every night", base)
