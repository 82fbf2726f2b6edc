"""Tests of the exported model, in a process without our code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.loop.state import export
from tests.trainings import (
    processes,
    sample,
)
from training.mnist_ps.config import Config
from training.mnist_ps.main import workload

tf = pytest.importorskip("tensorflow")

STRANGER = """
import json, sys
import tensorflow as tf
serve = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
spec = serve.structured_input_signature[1]["images"]
answer = serve(images=tf.zeros([3, 784], tf.uint8))["probabilities"]
print(json.dumps([spec.dtype.name, spec.shape.as_list(), answer.numpy().tolist()]))
"""


def stranger_says(folder):
    return json.loads(
        subprocess.run(
            [sys.executable, "-c", STRANGER, str(folder)],
            cwd=folder,
            env={"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONSAFEPATH": "1"},
            capture_output=True,
            check=True,
            timeout=120,
            text=True,
        ).stdout
    )


@pytest.mark.slow
def test_a_stranger_can_use_the_model(tmp_path):
    mnist = workload(Config(data_dir=processes.write(tmp_path / "data")))
    model = mnist.model()
    folder = tmp_path / "export"
    export(mnist.model(), folder, "/job:localhost")
    model.output_bias.assign(tf.range(10.0))
    export(model, folder, "/job:localhost")
    kind, shape, answer = stranger_says(folder)
    assert (kind, shape) == ("uint8", [None, 784])
    expected = tf.nn.softmax(model.logits(tf.zeros([3, 784], tf.uint8))).numpy()
    assert answer == pytest.approx(expected, abs=1e-6)
    assert [each.name for each in tmp_path.iterdir() if "export" in each.name] == ["export"]


def test_the_model_is_on_the_disk_before_it_takes_the_place_of_another(tmp_path, monkeypatch):
    seen, fsync, rename = [], os.fsync, Path.rename

    def synced(number):
        seen.append(os.readlink(f"/proc/self/fd/{number}"))
        fsync(number)

    def renamed(path, target):
        seen.append(f"{path} is {target}")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "rename", renamed)
    folder, part = tmp_path / "export", tmp_path / "export.part"
    export(sample.Linear(4), folder, "/job:localhost")
    *files, last, parent = seen
    assert (last, parent) == (f"{part} is {folder}", str(tmp_path))
    assert {Path(each).relative_to(part) for each in files} == {
        each.relative_to(folder) for each in (*folder.rglob("*"), folder)
    }
