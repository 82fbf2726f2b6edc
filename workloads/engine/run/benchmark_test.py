"""Tests of the benchmark: steps are timed once, after the warm-up."""

from __future__ import annotations

import io
import json

from engine.run.metrics import WARM_UP_STEPS, Benchmark, MetricsLog


def said(steps, calls):
    stream = io.StringIO()
    benchmark = Benchmark(MetricsLog(stream=stream), steps, batch_size=32)
    for call in calls:
        benchmark.add(*call)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_the_first_steps_do_not_count():
    (event,) = said(30, [(WARM_UP_STEPS, 100.0), *[(10, 2.0)] * 3, (10, 50.0)])
    assert event["event"] == "benchmark"
    assert (event["steps"], event["seconds"], event["steps_per_second"], event["examples_per_second"]) == (
        30,
        6.0,
        5.0,
        160.0,
    )


def test_a_call_counts_whole():
    (event,) = said(15, [(8, 1.0), (8, 1.0), (8, 4.0), (8, 4.0)])
    assert (event["steps"], event["steps_per_second"]) == (16, 2.0)


def test_nothing_is_said_without_a_wish_or_before_the_end():
    assert said(0, [(10, 1.0)] * 9) == []
    assert said(30, [(10, 1.0)] * 3) == []
