"""Tests of calls that end in any order, or never."""

from __future__ import annotations

import threading
import time

import pytest

from engine.errors import StalledError
from engine.loop.step_scheduler import Calls, Dispatcher, Pace


class Result:
    """A substitute for the coordinator's result: `fetch` waits for `end`."""

    def __init__(self):
        self.done, self.outcome = threading.Event(), None

    def end(self, outcome):
        self.outcome = outcome
        self.done.set()

    def fetch(self):
        self.done.wait()
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


@pytest.fixture
def sent():
    made = {}
    yield made
    for result in made.values():
        result.end(None)


def calls(sent, target=0, stall_timeout=60.0, workers=2):
    """Return calls of one step each for two workers, none of them queued."""

    def schedule(call):
        return sent.setdefault(call.first, Result())

    return Calls(Dispatcher(0, target, 6), Pace(workers, 1), schedule, stall_timeout)


def test_a_hung_call_costs_nothing_but_its_lane(sent):
    made = calls(sent)
    made.hand_out()
    for step in range(1, 30):
        sent[step].end(step)
        ended = made.take_in(5)
        assert (ended.call.first, ended.values, ended.error) == (step, step, None)
        made.hand_out()
    assert not sent[0].done.is_set()
    sent[0].end("late")
    assert made.take_in(5).values == "late"


def test_no_call_in_time_is_nothing(sent):
    made = calls(sent)
    made.hand_out()
    assert made.take_in(0.05) is None


def test_an_error_comes_with_its_call(sent):
    made = calls(sent)
    made.hand_out()
    sent[1].end(ValueError("broken"))
    ended = made.take_in(5)
    assert ended.call.first == 1 and str(ended.error) == "broken"


def test_a_call_that_stays_away_ends_the_run_though_others_come_back(sent):
    made = calls(sent, stall_timeout=0.5)
    begun = time.monotonic()
    made.hand_out()
    with pytest.raises(StalledError, match="Steps 0 to 0 did not come back"):
        for step in range(1, 1000):
            time.sleep(0.02)
            sent[step].end(step)
            made.take_in(5)
            made.hand_out()
    assert 0.5 < time.monotonic() - begun < 5


def test_nothing_is_handed_out_past_the_target(sent):
    made = calls(sent, target=3, workers=8)
    made.hand_out()
    assert sorted(sent) == [0, 1, 2]
