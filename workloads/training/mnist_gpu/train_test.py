"""Tests of a whole run as a process, on small data: without a GPU, with a required GPU, and continued."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trainings import processes

pytest.importorskip("tensorflow")
ROOT = Path(__file__).parents[2]


def run(tmp_path, *flags):
    """Return exit code and events of one process."""
    folders = [f"--data_dir={tmp_path / 'data'}", f"--log_dir={tmp_path / 'logs'}", "--batch_size=20"]
    argv = [sys.executable, "-m", "training.mnist_gpu.main", *folders, *flags]
    found = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(argv, cwd=ROOT, env=found, capture_output=True, text=True, check=False, timeout=300)
    events = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    assert events, result.stderr
    return result.returncode, events


@pytest.fixture
def data(tmp_path):
    processes.write(tmp_path / "data")


@pytest.mark.slow
def test_a_run_on_the_cpu_says_so_and_goes_on(tmp_path, data):
    code, events = run(tmp_path, "--require_gpu=False", "--train_steps=40", "--accuracy_bound=0.5")
    end = events[-1]
    assert (code, end["event"], end["result"], end["compute"], end["gpu_allocated"]) == (0, "end", "passed", "cpu", 0)
    judged = [event["step"] for event in events if event["event"] == "evaluate"]
    assert judged == [10, 20, 30, 40], "accuracy every 10 steps"
    assert (tmp_path / "logs/export/saved_model.pb").exists()
    code, events = run(tmp_path, "--require_gpu=False", "--train_steps=60", "--attempt=second")
    kinds = {event["event"]: event for event in events}
    assert (code, kinds["restore"]["step"], kinds["end"]["step"], kinds["end"]["result"]) == (0, 40, 60, "no_bound")


@pytest.mark.slow
def test_a_required_gpu_that_is_not_there_ends_the_run_at_its_start(tmp_path, data):
    code, events = run(tmp_path)
    assert (code, events[-1]["event"]) == (2, "error")
    assert "A GPU is required" in events[-1]["message"]


@pytest.mark.slow
def test_a_bound_that_is_not_reached(tmp_path, data):
    code, events = run(tmp_path, "--require_gpu=false", "--train_steps=1", "--accuracy_bound=1", "--learning_rate=1e-9")
    assert (code, events[-1]["result"]) == (3, "failed")
