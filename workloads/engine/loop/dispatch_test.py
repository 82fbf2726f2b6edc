"""Tests that every step is handed out exactly once, for any boundaries and any order of completion."""

from __future__ import annotations

import random

import pytest

from engine.loop.step_scheduler import Call, Dispatcher


def drive(dispatcher: Dispatcher, limit: int, seed: int) -> list[Call]:
    """Run to the end as the chief does: fill, collect any, pass barriers. Return every call."""
    order = random.Random(seed)
    calls = []
    for _ in range(10_000):
        while call := dispatcher.next_call(limit):
            calls.append(call)
        lanes = [call.lane for call in dispatcher.pending.values()]
        assert len(set(lanes)) == len(lanes) <= dispatcher.lanes
        assert dispatcher.under_way == sum(call.count for call in dispatcher.pending.values())
        if dispatcher.pending:
            dispatcher.collect(order.choice(list(dispatcher.pending.values())))
        elif dispatcher.at_barrier and not dispatcher.finished:
            dispatcher.pass_barrier()
        else:
            return calls
    raise AssertionError("does not end")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("start", "target", "limit", "lanes", "boundaries", "barrier"),
    [
        (0, 200, 10, 6, (20,), 200),
        (0, 57, 10, 6, (10,), 25),
        (57, 157, 10, 6, (10,), 25),
        (200, 400, 10, 6, (20,), 200),
        (0, 7, 10, 1, (), 0),
        (0, 1000, 64, 3, (7, 0), 30),
        (5, 5, 10, 6, (20,), 200),
        (9, 5, 10, 6, (20,), 200),
    ],
)
def test_every_step_once(start, target, limit, lanes, boundaries, barrier, seed):
    dispatcher = Dispatcher(start, target, lanes, boundaries, barrier)
    calls = drive(dispatcher, limit, seed)
    steps = [step for call in calls for step in range(call.first, call.first + call.count)]
    assert steps == list(range(start, target))
    assert dispatcher.finished
    for call in calls:
        assert 1 <= call.count <= limit
        for every in (*boundaries, barrier):
            assert not every or call.first // every == (call.first + call.count - 1) // every


def test_steps_before_a_boundary_are_divided_evenly():
    calls = drive(Dispatcher(0, 40, 4, (20,)), limit=9, seed=0)
    assert [call.count for call in calls] == [7, 7, 6, 7, 7, 6]


def test_a_call_that_does_not_end_holds_its_lane_only():
    dispatcher = Dispatcher(0, 0, 3)
    hung = dispatcher.next_call(10)
    for _ in range(20):
        while call := dispatcher.next_call(10):
            last = call
        dispatcher.collect(last)
    assert dispatcher.pending[hung.lane] == hung
    assert dispatcher.collected == 200 and dispatcher.under_way == 20


def test_a_barrier_waits_for_every_call():
    dispatcher = Dispatcher(0, 0, 6, (), 20)
    dispatcher.pass_barrier()
    calls = [dispatcher.next_call(10) for _ in range(2)]
    assert dispatcher.next_call(10) is None
    dispatcher.collect(calls[1])
    assert not dispatcher.at_barrier
    dispatcher.collect(calls[0])
    assert dispatcher.at_barrier and dispatcher.collected == 20
    dispatcher.pass_barrier()
    assert dispatcher.next_call(10).first == 20
