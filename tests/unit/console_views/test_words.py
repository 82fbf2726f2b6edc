"""Numbers, times, YAML and curves as the console shows them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from trainyard.console.views import cluster_page, curves, events, words


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(None, "\u2013"), (0, "0 s"), (59.4, "59 s"), (60, "1 min"), (130, "2 min 10 s"), (3600, "1 h"),
     (11_100, "3 h 5 min"), (86_400, "1 d"), (90_000, "1 d 1 h"), (-5, "0 s"),
     (float("nan"), "\u2013"), (float("inf"), "\u2013")],
)  # fmt: skip
def test_durations(seconds: float | None, shown: str) -> None:
    assert words.duration(seconds) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(None, "\u2013"), (7.4, "7 s"), (119, "119 s"), (410, "7 min"), (9000, "2 h"), (float("nan"), "\u2013")],
)
def test_estimates_have_one_unit(seconds: float | None, shown: str) -> None:
    assert words.about(seconds) == shown


@pytest.mark.parametrize(("value", "shown"), [(None, "\u2013"), (0.24412, "0.2441"), (12.0, "12"), (118.44, "118.4"),
                                              (12345.6, "12,346"), (1e-9, "1e-09")])  # fmt: skip
def test_numbers(value: float | None, shown: str) -> None:
    assert words.number(value) == shown


@pytest.mark.parametrize(
    ("count", "shown"), [(0, "0 B"), (2048, "2.0 KiB"), (3.2 * 2**30, "3.2 GiB"), (None, "\u2013")]
)
def test_sizes(count: float | None, shown: str) -> None:
    assert words.size(count) == shown


@pytest.mark.parametrize("odd", ["", None, "yesterday", 1e300, float("nan"), [], "2026-13-01T00:00:00Z"])
def test_what_is_no_time_is_not_known(odd: object) -> None:
    assert words.clock(odd) == words.NOTHING


def test_links_quote_every_part() -> None:
    assert words.link("runs", "a/b", "..?x#y z") == "/runs/a%2Fb/..%3Fx%23y%20z"


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, 2.5, {"b": "x\ny\n", "c": []}, [[], {}]]},
        {"d": {"e": None, "f": True, "g": "yes", "h": "1.5", "i": ""}},
        {"a": "key: value # no comment", "b": " begins", "c": "ends ", "d": "two\n\nlines\n\n", "e": "\n", "f": "-"},
        {"2026-11-22T12:00:00Z": "2026-11-22T12:00:00Z", "~": "~", "null": "null", "é": "ü <b>", "on": "on"},
        {"tabs": "\ta\nb", "bell": "a\x07\nb", "line separator": "a\u2028b\nc", "hash": "#\nb", "cut": "a\n  b\n c"},
        [], {}, "x", [{"a": "l1\nl2", "b": 2}], [["a\nb", 1], 2],
    ],
)  # fmt: skip
def test_yaml_says_what_the_object_says(value: Any) -> None:
    assert yaml.safe_load(cluster_page.text(value)) == value


STEPS = [{"event": "step", "step": step, "loss": loss} for step, loss in ((20, 2.0), (40, 1.0), (60, 0.5))]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (STEPS, [[20, 2.0], [40, 1.0], [60, 0.5]]),
        # It went back to a checkpoint at step 20, and has done 40 again.
        (
            [*STEPS, {"event": "restore", "step": 20}, {"event": "step", "step": 40, "loss": 0.9}],
            [[20, 2.0], [40, 0.9]],
        ),
        (
            [{"event": "step", "step": 20, "loss": None}, {"event": "step", "loss": 1.0}, {"event": "end", "step": 3}],
            [],
        ),
    ],
)
def test_steps_that_are_done_again_count_once(said: list[dict[str, Any]], expected: list[list[float]]) -> None:
    assert curves.points(said, "loss") == expected


def test_a_drawing_stays_within_its_bounds() -> None:
    made = curves.drawing([[0, 0.5], [10, 0.9]], bound=0.95)
    assert made and made["path"] == "M0.0,190.0 L600.0,30.0" and made["bound"] == "10.0"
    assert curves.drawing([[5, 1.0]]) and curves.drawing([]) is None


def test_attempts_that_tensorboard_has() -> None:
    boards = ["attempts/A/train", "attempts/A/eval", "attempts/B/train", "other/attempts/C/train", "attempts/A/x/train"]
    assert curves.attempts(boards, "mnist") == {
        "A": [("attempts/A/train", "loss"), ("attempts/A/train", "steps_per_second"), ("attempts/A/eval", "accuracy")],
        "B": [("attempts/B/train", "loss"), ("attempts/B/train", "steps_per_second")],
    }
    assert curves.of_board([[1.0, 20, 2.5], [2.0, 40], "x", [1, 2, "y"]]) == [[20, 2.5]] and curves.of_board({}) == []


def test_events_are_ordered_by_when_they_were_seen_last() -> None:
    def event(name: str, **fields: Any) -> dict[str, Any]:
        return {"metadata": {"name": name, "creationTimestamp": "2026-11-22T10:00:00Z"}, "message": name, **fields}

    found = [
        event("old"),
        event("series", series={"lastObservedTime": "2026-11-22T12:00:00Z", "count": 7}, type="Warning"),
        event("new", lastTimestamp="2026-11-22T11:00:00Z", count=3),
    ]
    now = words.moment("2026-11-22T12:00:10Z")
    assert now
    rows = events.events(found, now)
    assert [(each["message"], each["age"], each["count"]) for each in rows] == [
        ("series", "10 s", 7), ("new", "1 h", 3), ("old", "2 h", 1),
    ]  # fmt: skip
