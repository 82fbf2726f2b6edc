"""Events are held in bounded memory, and what a verdict needs is held for ever."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from trainyard.trainings import pod_logs as limits
from trainyard.trainings.log_events import event_in, events, heard_in, last, outcome
from trainyard.trainings.model import Success
from trainyard.trainings.pod_logs import Said


def test_a_metric_of_long_ago_counts() -> None:
    said = Said()
    said.add({"event": "connected", "time": 1.0}, 40)
    said.add({"event": "evaluate", "accuracy": 0.6}, 40)
    said.add({"event": "evaluate", "accuracy": 0.9}, 40)
    for step in range(3 * limits.HELD_EVENTS):
        said.add({"event": "step", "step": step}, 40)
    found = said.events()
    assert limits.HELD_EVENTS <= len(found) < limits.HELD_EVENTS + 10
    assert outcome(found, Success(metric="accuracy", at_least=0.7)) == ("passed", "")
    assert found[0]["event"] == "connected" and last(found, "step")["step"] == 3 * limits.HELD_EVENTS - 1
    assert [each["step"] for each in found if each["event"] == "step"][-limits.HELD_EVENTS :] == list(
        range(2 * limits.HELD_EVENTS, 3 * limits.HELD_EVENTS)
    )


def test_a_hostile_program_fills_no_memory() -> None:
    said = Said()
    for number in range(2_000):
        said.add({"event": f"e{number}", f"f{number}": "x"}, 1_000_000)
    for number in range(30_000):
        said.add({"event": f"k{number}", f"g{number}": 1}, 100)
    assert len(said.events()) < limits.HELD_EVENTS + 3 * limits.HELD_NAMES


def test_an_event_on_a_line_with_a_bar() -> None:
    end = '{"event": "end", "note": "a\u2028b"}'
    for before in ("", "\r203/300", "1/2\r2/2\r", "\r2/2 {x} ", '\r{"a": 1} ', " \x00\x0c"):
        assert [each["event"] for each in events(f"{before}{end}\r\n")] == ["end"], before
    assert events(f"203/300{end}\n{end}\rover\n") == [], "no line of ours"
    assert event_in(end.encode(), cut=True) is None
    assert event_in(f"\r1/2{end}".encode(), cut=True) is not None
    assert event_in(b'{"event": "x", "fill": "' + b"y" * 2**20 + b'"}') is None
    assert event_in(b"\r" + b'{"a" ' * 200_000) is None


@pytest.mark.parametrize(
    ("fields", "understood"),
    [
        ({"step": 10.0, "steps_total": "200"}, {"step": 10, "steps_total": 200}),
        ({"accuracy": "0.97", "loss": " 1e-3 "}, {"accuracy": 0.97, "loss": 0.001}),
        ({"loss": "nan"}, {"loss": math.nan}),
        # Fields that are not ours keep their values.
        ({"epoch": "3", "val_loss": "0.2"}, {"epoch": "3", "val_loss": "0.2"}),
    ],
)
def test_numbers_in_text_and_whole_fractions_count(fields: dict[str, Any], understood: dict[str, Any]) -> None:
    (event,) = events(json.dumps({"event": "step", **fields}))
    # repr, because NaN is not equal to itself.
    assert repr(event) == repr({"event": "step", **understood})
    assert all(type(event[name]) is type(value) for name, value in understood.items())


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"accuracy": "good"}, "accuracy is 'good', not a number"),
        ({"step": 10.5}, "step is 10.5, not a whole number"),
        ({"step": "nan"}, "step is nan, not a whole number"),
        ({"step": True}, "step is True, not a whole number"),
        ({"time": -1}, "time is -1, not a time in seconds since 1970"),
        ({"result": 7}, "result is 7, not a text"),
        ({"accuracy": "9" * 500}, "not a number"),
        ({"accuracy": [1, 2]}, "accuracy is [1, 2], not a number"),
        ({"accuracy": "\u001b[31mred\r\n"}, "not a number"),
    ],
)
def test_an_event_that_is_refused_is_named(fields: dict[str, Any], why: str) -> None:
    event, refused = heard_in(json.dumps({"event": "step", **fields}).encode())
    assert event is None and why in refused
    assert len(refused) < 150 and refused.isprintable()


def test_a_line_without_an_event_is_not_refused() -> None:
    for line in (b"", b"epoch 1", b'{"accuracy": "good"}', b'{"event": ', b"[1]"):
        assert heard_in(line) == (None, "")
