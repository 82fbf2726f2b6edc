"""When a run whose deciding pod has ended with 0 has succeeded."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils.trainyard.training.logs import outcome
from ansible.module_utils.trainyard.training.model import Success

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
