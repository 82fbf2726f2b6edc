"""Tests of the evaluation of runs on claims, and of the program that measures the claim."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import input_rate
import pytest
import shared_runs
from timed import BenchError


def restored(step: int, at: float) -> dict[str, Any]:
    return {"event": "restore", "step": step, "time": at}


def steps(*pairs: tuple[int, float]) -> list[dict[str, Any]]:
    return [{"event": "step", "step": step, "time": at} for step, at in pairs]


OFF = 100.0
TOLD = [
    restored(shared_runs.STEPS, 1.0),
    *steps((220, 2.0), (520, 99.0)),
    restored(500, 170.0),
    *steps((520, 175.0), (540, 180.0), (shared_runs.MORE_STEPS, 200.0)),
]


def test_a_run_that_goes_on_from_another_node_and_past_its_loss_is_accounted_for() -> None:
    assert shared_runs.account(TOLD, OFF) == {"from": shared_runs.STEPS, "gap": 80.0, "lost": 20.0}


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ([restored(100, 1.0), *TOLD[1:]], "not from step 200"),
        (TOLD[1:], "not from step 200"),
        (TOLD[:3], "No chief has continued"),
        ([], "not from step 200"),
    ],
)
def test_a_run_that_began_anew_or_did_not_survive_is_not(told: list[dict[str, Any]], why: str) -> None:
    with pytest.raises(BenchError, match=why):
        shared_runs.account(told, OFF)


OUTPUT = [
    "attempts/a/metrics.jsonl",
    "attempts/a/train/events.out.tfevents.1",
    f"checkpoints/000001/ckpt-{shared_runs.STEPS}.index",
    "export/saved_model.pb",
]


def test_all_that_a_run_leaves_is_there_on_another_node() -> None:
    shared_runs.require_output(OUTPUT, "a")
    for number in range(len(OUTPUT)):
        with pytest.raises(BenchError, match="lacks"):
            shared_runs.require_output(OUTPUT[:number] + OUTPUT[number + 1 :], "a")
    with pytest.raises(BenchError, match="lacks"):
        shared_runs.require_output(OUTPUT, "b")


def test_a_rate_is_measured_by_the_program_that_runs_in_pods(tmp_path: Path) -> None:
    program = [sys.executable, input_rate.PROGRAM / "main.py", tmp_path, "2"]
    told = subprocess.run(program, check=True, capture_output=True, text=True, timeout=120).stdout
    where, written, read, times = input_rate.row("here", told)
    assert (where, times) == ("here", "2") and "MB/s (" in written and "MB/s (" in read
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(BenchError, match="Nothing was measured in here: no room"):
        input_rate.row("here", "no room")
