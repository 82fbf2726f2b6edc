"""The states of a site after a run, and when somebody hears of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trainyard.schedule import notify
from trainyard.schedule.notify import LastNotice, Notice

HOUR = 3600.0
REPAIRED = {"class": "repairable", "outcome": "proven"}
DRIFT = {"class": "repairable", "outcome": ""}
PERSON = {"class": "person", "outcome": ""}


@pytest.mark.parametrize(
    ("report", "state"),
    [
        ({"exit_status": 0, "items": []}, "clean"),
        ({"exit_status": 0, "items": [REPAIRED]}, "repaired"),
        ({"exit_status": 1, "items": [DRIFT]}, "drift"),
        ({"exit_status": 1, "items": [REPAIRED, PERSON]}, "person"),
        ({"exit_status": 1, "items": [{"class": "foreign"}]}, "person"),
        ({"exit_status": 1, "items": [{"class": "control_plane"}]}, "person"),
        ({"exit_status": 1, "items": [{"class": "restart"}]}, "drift"),
        ({"exit_status": 2}, "unknown"),
        ({"exit_status": 3, "items": [DRIFT], "limits": ["3 of 10 hosts have drifted"]}, "person"),
        ({"exit_status": 3, "items": [DRIFT], "limits": []}, "drift"),
        ({"exit_status": 4}, None),
        ({"exit_status": 5, "items": [DRIFT]}, "failed"),
        ({}, "unknown"),
    ],
)
def test_the_state_of_a_report(report: dict[str, Any], state: str | None) -> None:
    assert notify.state_of(report) == state


@pytest.mark.parametrize(
    ("last", "state", "now", "after", "notice"),
    [
        (None, "clean", 5.0, LastNotice("clean", 5.0, 0.0), None),
        (None, "drift", 5.0, LastNotice("drift", 5.0, 5.0), Notice("change", "drift", None, 5.0)),
        (LastNotice("clean", 1.0, 0.0), "clean", 5.0, LastNotice("clean", 1.0, 0.0), None),
        (LastNotice("clean", 1.0, 0.0), "repaired", 5.0, LastNotice("repaired", 5.0, 5.0),
         Notice("change", "repaired", "clean", 5.0)),
        (LastNotice("drift", 1.0, 1.0), "drift", 99 * HOUR, LastNotice("drift", 1.0, 1.0), None),
        (LastNotice("person", 1.0, 1.0), "person", 2 * HOUR, LastNotice("person", 1.0, 1.0), None),
        (LastNotice("person", 1.0, 1.0), "person", 24 * HOUR - 1700, LastNotice("person", 1.0, 24 * HOUR - 1700),
         Notice("reminder", "person", "person", 1.0)),
        (LastNotice("person", 9 * HOUR, 9 * HOUR), "person", 1 * HOUR, LastNotice("person", 9 * HOUR, 1 * HOUR),
         Notice("reminder", "person", "person", 9 * HOUR)),
        (LastNotice("person", 1.0, 1.0), "clean", 2 * HOUR, LastNotice("clean", 2 * HOUR, 2 * HOUR),
         Notice("change", "clean", "person", 2 * HOUR)),
        (LastNotice("failed", 1.0, 1.0), "failed", 99 * HOUR, LastNotice("failed", 1.0, 1.0), None),
        (LastNotice("person", 1.0, 1.0), None, 99 * HOUR, LastNotice("person", 1.0, 1.0), None),
        (None, None, 1.0, None, None),
    ],
)  # fmt: skip
def test_who_hears_of_it(
    last: LastNotice | None, state: notify.State | None, now: float, after: LastNotice | None, notice: Notice | None
) -> None:
    assert notify.step(last, state, now) == (after, notice)


def test_a_month_of_nights_with_a_person_needed_gives_one_notice_a_day() -> None:
    """The timer's random delay moves each night by up to 15 minutes; a run by hand in between adds none."""
    told, said = None, []
    for night in range(30):
        begin = night * 24 * HOUR + (night * 7919) % 900
        for now in (begin, begin + 2 * HOUR):
            told, notice = notify.step(told, "person", now)
            said += [notice.words] if notice else []
    assert said == ["an operator is needed"] + ["still: an operator is needed"] * 29


@pytest.mark.parametrize("text", ["", "{", "[]", '{"state": "glad", "since": 1, "told": 1}', '{"state": "clean"}'])
def test_what_cannot_be_read_is_as_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(text, encoding="utf-8")
    assert notify.load(path) is None
    notify.save(path, LastNotice("person", 1.0, 2.0))
    assert notify.load(path) == LastNotice("person", 1.0, 2.0)
