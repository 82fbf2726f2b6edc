"""Tests of JSON lines and TensorBoard events."""

from __future__ import annotations

import io
import json

import pytest

from engine.errors import InputError
from engine.run.metrics import MetricsLog
from tests.trainings.tensorboard_events import shown


def test_lines_go_to_the_stream_and_are_appended_to_the_file(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"event": "older"}\n')
    stream = io.StringIO()
    MetricsLog(tmp_path, stream).emit("step", step=20, loss=float("nan"), speed=1 / 3)
    line = json.loads(stream.getvalue())
    assert (line["event"], line["step"], line["loss"], line["speed"]) == ("step", 20, None, 0.333333)
    assert line["time"] > 1.7e9
    kept = [json.loads(text) for text in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert kept == [{"event": "older"}, line]


def test_without_a_directory_only_the_stream_is_written():
    stream = io.StringIO()
    log = MetricsLog(stream=stream)
    log.emit("start")
    log.scalars("train", 1, loss=0.5)
    assert json.loads(stream.getvalue())["event"] == "start"


def test_a_log_directory_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        MetricsLog(tmp_path / "file" / "logs")


def test_a_full_volume_is_said_once_and_ends_nothing(tmp_path, capsys):
    (tmp_path / "metrics.jsonl").symlink_to("/dev/full")
    stream = io.StringIO()
    log = MetricsLog(tmp_path, stream)
    for step in range(1000):
        log.emit("step", step=step)
    assert len(stream.getvalue().splitlines()) == 1000
    said = capsys.readouterr().err
    assert said == f"The folder {tmp_path} cannot be written (No space left on device). Make room on its volume.\n"


def test_scalars_on_a_full_volume_end_nothing(tmp_path, capsys):
    tf = pytest.importorskip("tensorflow")
    log = MetricsLog(tmp_path, io.StringIO())
    log.scalars("train", 20, loss=0.5)
    log._events["train"]._writer = tf.io.TFRecordWriter("/dev/full")
    log.scalars("train", 40, loss=0.25)
    said = capsys.readouterr().err
    assert said == f"The folder {tmp_path} cannot be written (No space left on device). Make room on its volume.\n"
    (tmp_path / "other").mkdir()
    (tmp_path / "other/train").write_text("")
    MetricsLog(tmp_path / "other", io.StringIO()).scalars("train", 20, loss=0.5)
    assert "cannot be written" in capsys.readouterr().err


def test_scalars_can_be_read_back_as_tensorboard_events(tmp_path):
    pytest.importorskip("tensorflow")
    log = MetricsLog(tmp_path, io.StringIO())
    log.scalars("train", 20, loss=0.5)
    log.scalars("train", 40, loss=0.25)
    log.scalars("eval", 40, accuracy=0.75)
    assert shown(tmp_path / "train") == [(20, "loss", 0.5), (40, "loss", 0.25)]
    assert shown(tmp_path / "eval") == [(40, "accuracy", 0.75)]


def test_steps_that_are_done_again_are_shown_once(tmp_path, monkeypatch):
    pytest.importorskip("tensorflow")
    for pid, steps in ((1, (20, 40, 60)), (2, (40, 60))):
        monkeypatch.setattr("os.getpid", lambda pid=pid: pid)
        log = MetricsLog(tmp_path, io.StringIO())
        for step in steps:
            log.scalars("train", step, loss=pid)
    assert shown(tmp_path / "train") == [(20, "loss", 1), (40, "loss", 2), (60, "loss", 2)]
