"""Tests of the pace against a simulated cluster."""

from __future__ import annotations

import heapq

import pytest

from engine.loop.step_scheduler import AHEAD_SECONDS, CALLS_PER_WORKER, Pace


def simulate(workers: int, step_seconds: float, call_seconds: float = 0.002, first_seconds: float = 0.0) -> dict:
    """Queue 600 calls to workers as the coordinator does, and return figures of the second half."""
    pace = Pace(workers, limit=10)
    free = [first_seconds] * workers
    now, done = 0.0, 0
    under_way: list[tuple[float, int, int, float]] = []
    ahead, busy_from, most = [], 0.0, 0
    for number in range(600):
        while pace.allows(len(under_way), sum(each[1] for each in under_way)):
            count = pace.steps
            start = max(now, heapq.heappop(free))
            end = start + call_seconds + count * step_seconds
            heapq.heappush(free, end)
            steps = sum(each[1] for each in under_way) + count
            heapq.heappush(under_way, (end, count, steps, now))
        most = max(most, len(under_way))
        if number == 300:
            busy_from, done = now, 0
        if number >= 300:
            ahead.append(max(each[0] for each in under_way) - now)
        now, count, steps, handed = heapq.heappop(under_way)
        done += count
        pace.learn(steps, now - handed)
    return {"ahead": max(ahead), "rate": done / (now - busy_from), "most": most, "steps": pace.steps}


@pytest.mark.parametrize("workers", [1, 2, 16])
@pytest.mark.parametrize("step_seconds", [0.0001, 0.001, 0.01, 0.05, 0.2, 1.0])
def test_workers_are_busy_and_little_is_under_way(workers, step_seconds):
    seen = simulate(workers, step_seconds, first_seconds=3.0)
    assert seen["ahead"] <= max(1.5 * AHEAD_SECONDS, 1.1 * step_seconds)
    assert seen["rate"] >= 0.8 * workers / (step_seconds + 0.002)
    assert seen["most"] <= CALLS_PER_WORKER * workers


@pytest.mark.parametrize("slow", [1, 2.5])
def test_calls_stay_large_where_a_call_itself_costs_much(slow):
    """Use figures measured for mnist_ps: 8 ms for a step and 22 ms for a call, on two busy cores."""
    assert simulate(2, 0.008 * slow, call_seconds=0.022 * slow)["steps"] >= 9


def test_short_steps_come_in_full_calls():
    assert simulate(2, 0.001)["steps"] == 10


def test_the_first_calls_are_small():
    pace = Pace(workers=4, limit=10)
    assert pace.steps == 1
    assert pace.allows(3, 3) and not pace.allows(4, 4)
