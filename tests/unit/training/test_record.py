"""What is taken of a record that somebody has changed by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainyard.trainings.record import read

GOOD = {
    "result": "stopped",
    "steps": 40,
    "train_steps": None,
    "restarts": 1,
    "accuracy": 0.5,
    "files": {"claim": "training", "folder": "/logs/mnist", "image": "mirror:5000/a@sha256:1"},
    "why": "said by a person",
}


def record(result: Any) -> dict[str, Any]:
    return {"metadata": {"name": "mnist-result"}, "data": {"result.json": json.dumps(result)}}


def test_a_record_of_ours_is_read_whole() -> None:
    assert read(record(GOOD)) == GOOD


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *((name, value) for name in ("steps", "train_steps", "restarts") for value in ("x", [], 1.5, True)),
        *(("files", value) for value in ([], "x", None)),
        *((name, "x") for name in ("accuracy", "steps_per_second", "gpu_allocated")),
        ("compute", 1),
        ("result", {}),
        pytest.param("steps", 10**400, id="steps-beyond"),
    ],
)
def test_a_field_of_another_type_is_left_out(field: str, value: object) -> None:
    assert read(record({**GOOD, field: value})) == {name: it for name, it in GOOD.items() if name != field}


@pytest.mark.parametrize("odd", [None, [], "x", 1])
def test_what_is_no_record_is_empty(odd: object) -> None:
    assert read(record(odd)) == read(None) == {}
