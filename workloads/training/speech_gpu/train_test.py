"""Tests of whole runs as processes, on tones instead of letters."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.errors import InputError
from tests.trainings import speech_samples
from training.speech_gpu.config import Config

pytest.importorskip("tensorflow")
ROOT = Path(__file__).parents[2]


def test_the_flags_are_those_of_deepspeech():
    config = Config()
    assert (config.train_files, config.dev_files, config.test_files) == ("train.csv", "dev.csv", "test.csv")
    assert (config.batch_size, config.dev_batch_size, config.test_batch_size) == (32, 32, 32)
    assert (config.require_gpu, config.train_steps, config.learning_rate_decay) == ("true", 600, "cosine")
    for wrong in ({"train_files": ""}, {"test_files": "a.csv,,b.csv"}, {"dev_batch_size": 0}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            Config(**wrong)


def run(tmp_path, *flags):
    """Return exit code and events of one process."""
    folders = [f"--data_dir={tmp_path / 'data'}", f"--log_dir={tmp_path / 'logs'}", "--require_gpu=false"]
    small = ["--train_batch_size=4", "--units=32", "--learning_rate_decay=none"]
    argv = [sys.executable, "-m", "training.speech_gpu.main", *folders, *small, *flags]
    found = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(argv, cwd=ROOT, env=found, capture_output=True, text=True, check=False, timeout=300)
    events = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    assert events, result.stderr
    return result.returncode, {event["event"]: event for event in events}


@pytest.mark.slow
def test_a_run_says_its_errors_and_its_speed(tmp_path):
    for name, sentences in (("train", ["abc", "cab", "ba c", "b"] * 2), ("dev", ["ac"]), ("test", ["bca", "cb"])):
        speech_samples.write(tmp_path / "data", sentences, f"{name}.csv")
    code, events = run(tmp_path, "--train_steps=240", "--accuracy_bound=0.5", "--benchmark_steps=30")
    judged, end = events["evaluate"], events["end"]
    assert (code, end["result"], end["compute"], judged["examples"]) == (0, "passed", "cpu", 2)
    assert end["accuracy"] == pytest.approx(1 - judged["character_error_rate"], abs=1e-5)
    assert judged.keys() >= {"word_error_rate", "dev_character_error_rate", "dev_word_error_rate"}
    assert events["benchmark"]["steps"] == 30
    assert events["benchmark"]["examples_per_second"] == pytest.approx(4 * events["benchmark"]["steps_per_second"])
    assert (tmp_path / "logs/export/saved_model.pb").exists()


@pytest.mark.slow
def test_a_gpu_is_required(tmp_path):
    code, events = run(tmp_path, "--require_gpu=true")
    assert (code, events["error"]["code"]) == (2, 2)
    assert "A GPU is required" in events["error"]["message"]


@pytest.mark.slow
def test_data_with_faults_is_refused(tmp_path):
    speech_samples.write(tmp_path / "data", ["ab"], "train.csv")
    (tmp_path / "data/train-0.wav").write_bytes(b"OggS")
    code, events = run(tmp_path, "--train_files=train.csv,more.csv")
    assert (code, events["error"]["code"]) == (2, 2)
    for fault in ("train-0.wav is not a WAV file", "more.csv cannot be read", "test.csv cannot be read"):
        assert fault in events["error"]["message"]
    assert "Repair these files" in events["error"]["remedy"]
