"""When a run whose deciding pod has ended with 0 has succeeded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.training.samples import training
from trainyard.core.errors import TrainyardError
from trainyard.trainings.log_events import events, idle_gpus, outcome, summary
from trainyard.trainings.model import Success

END = {"event": "end", "result": "passed"}


@pytest.mark.parametrize(
    ("said", "result"),
    [
        ([], "passed"),
        ([{"event": "step", "step": 1}], "passed"),
        ([END], "passed"),
        ([{**END, "result": "no_bound"}], "no_bound"),
    ],
)
def test_by_the_exit_code(said: list[dict[str, Any]], result: str) -> None:
    assert outcome(said, Success()) == (result, "")


def test_what_a_program_says_of_itself_counts() -> None:
    assert outcome([{**END, "result": "bound_missed"}], Success())[1]


@pytest.mark.parametrize(
    ("values", "result"),
    [([0.91], "passed"), ([0.9], "passed"), ([0.95, 0.89], "failed"), ([], "failed"), ([float("nan")], "failed")],
)
def test_by_the_last_value_of_a_metric(values: list[float], result: str) -> None:
    said = [{"event": "evaluate", "accuracy": value} for value in values]
    found, why = outcome([*said, END], Success("accuracy", 0.9))
    assert found == result
    assert bool(why) == (result == "failed")


@pytest.mark.parametrize(
    ("success", "values", "why"),
    [
        (Success("loss", at_most=0.2), [0.5, 0.2], ""),
        (Success("loss", at_most=0.2), [0.1, 0.21], "loss is 0.21, but at most 0.2 is required"),
        (Success("loss", at_most=0.2), [float("nan")], "loss is nan, but at most 0.2 is required"),
        (Success("loss", at_least=0.1, at_most=0.2), [0.05], "but at least 0.1 and at most 0.2 is required"),
        (Success("loss", at_most=0.2), ["0.15"], ""),
        (Success("loss", at_most=0.2), ["low"], "loss is unknown, but at most 0.2 is required"),
        (Success("loss", at_most=0.2), [True], "loss is unknown"),
    ],
)
def test_by_bounds_of_a_metric(success: Success, values: list[Any], why: str) -> None:
    found, said = outcome([{"event": "step", "loss": value} for value in values], success)
    assert (found == "passed") == (not why)
    assert why in said


@pytest.mark.parametrize(
    "bounds",
    [{"at_most": "x"}, {"at_least": 1, "other": 2}, {}, {"at_least": True}, {"metric": "", "at_least": 1}],
)
def test_bounds_that_are_none(bounds: dict[str, Any]) -> None:
    with pytest.raises(TrainyardError, match="a metric with its bounds: at_least, at_most or both"):
        training(success={"metric": "loss", **bounds})


DEVICE = {"event": "device", "compute": "cpu", "gpu_allocated": 1}


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ([DEVICE, END], ("cpu", 1)),
        # A worker that was replaced has found its GPU; the end has the last word.
        ([DEVICE, {**END, "compute": "gpu", "gpu_allocated": 2}], ("gpu", 2)),
        ([END], (None, None)),
        ([{"event": "device"}, END], (None, None)),
    ],
)
def test_a_run_says_what_it_computes_on(said: list[dict[str, Any]], known: tuple[Any, Any]) -> None:
    found = summary(said, {})
    assert (found.get("compute"), found.get("gpu_allocated")) == known


@pytest.mark.parametrize("line", ['{"event": "device", "compute": 1}', '{"event": "device", "gpu_allocated": "two"}'])
def test_devices_in_other_words_are_none_of_ours(line: str) -> None:
    assert events(line) == []


@pytest.mark.parametrize(
    ("compute", "gpus", "said"),
    [
        ("cpu", 1, "1 GPU allocated and not used"),
        ("cpu", 2, "2 GPUs allocated and not used"),
        ("cpu", 0, ""),
        ("gpu", 2, ""),
        (None, None, ""),
    ],
)
def test_gpus_that_nobody_computes_on_are_named(compute: str | None, gpus: int | None, said: str) -> None:
    assert idle_gpus({"compute": compute, "gpu_allocated": gpus}) == said


@pytest.mark.parametrize(
    ("field", "value", "ours"),
    [
        ("time", 1.7e9, True), ("time", 1e300, False), ("time", -1, False), ("time", float("nan"), False),
        ("steps_per_second", float("nan"), False), ("steps_per_second", float("inf"), False), ("seconds", 3, True),
        ("loss", float("nan"), True),
    ],
)  # fmt: skip
def test_times_that_nobody_could_write_are_not_ours(field: str, value: float, ours: bool) -> None:
    assert bool(events(json.dumps({"event": "step", field: value}))) is ours
