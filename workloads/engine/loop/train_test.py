"""Tests of the chief's work around its loop, with a cluster in this process and everything else real."""

from __future__ import annotations

import errno
import gc
import json
import os
import weakref
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.cluster.watchdog import Watchdog
from engine.config import Config
from engine.errors import ExitCode, VolumeError
from engine.loop import evaluation, state, train
from engine.loop.evaluate import Score
from engine.run.metrics import MetricsLog
from engine.run.run_folder import Attempt, RunFolder, steps
from tests.trainings import sample

tf = pytest.importorskip("tensorflow")


class Cluster:
    """A cluster without other processes."""

    addresses = {"ps": ("ps:1",), "worker": ("worker:1", "worker:2")}  # noqa: RUF012

    def peers(self, *_):
        return {}


class Told:
    """A preemption that occurs after the given number of events; 0: never."""

    def __init__(self, at=0, sees=lambda: 0):
        self._at, self._sees = at, sees

    @property
    def requested(self):
        return 0 < self._at <= self._sees()

    def defer(self, _):
        pass


LISTENER = SimpleNamespace(missing=list, computes=lambda: {"compute": "cpu", "gpu_allocated": 2})


class Coordinator:
    """Executes each call at once."""

    def create_per_worker_dataset(self, source):
        return source()

    def schedule(self, call, args):
        return SimpleNamespace(fetch=lambda: call(*args))


class Chief:
    """Successive chiefs in the folder of one run."""

    def __init__(self, path):
        self.path = path

    def live(self, told=None, attempt="first", **flags):
        """Run one chief, and return its exit code."""
        config = Config(**{"batch_size": 8, "report_every": 4, "steps_per_dispatch": 4, "log_dir": self.path, **flags})
        self.folder = RunFolder(self.path, attempt, print)
        log = MetricsLog(self.folder.attempt.folder)
        rest = (Watchdog(60, print), told or Told(), LISTENER, self.folder, 0.0)
        try:
            return train.train(sample.workload(config), Cluster(), log, *rest)
        finally:
            self.folder.release()

    def events(self, name, attempt="first"):
        path = self.path / "attempts" / attempt / "metrics.jsonl"
        lines = map(json.loads, path.read_text().splitlines()) if path.exists() else []
        return [event for event in lines if event["event"] == name]

    def steps(self, name, attempt="first"):
        return [event["step"] for event in self.events(name, attempt)]


@pytest.fixture
def chief(tmp_path, monkeypatch):
    monkeypatch.setattr(train, "_connect", lambda _: (tf.distribute.get_strategy(), Coordinator()))
    monkeypatch.setattr(train, "_KEPT", [])
    monkeypatch.setattr(train, "CHIEF_DEVICE", "/job:localhost")
    return Chief(tmp_path / "run")


def test_a_chief_trains_saves_judges_and_ends(chief):
    assert chief.live(train_steps=12, checkpoint_every=4) == ExitCode.TRAINED
    assert chief.steps("checkpoint") == chief.steps("evaluate") == [4, 8, 12]
    assert chief.steps("saving") == chief.steps("evaluating") == [4, 8, 12]
    assert chief.events("end")[-1]["step"] == chief.folder.evaluations.read().step == 12
    assert (chief.path / "export/saved_model.pb").exists()
    assert {chief.events(name)[-1]["gpu_allocated"] for name in ("device", "end")} == {2}


def test_the_checkpoint_that_a_run_goes_on_from_is_judged(chief):
    assert chief.live(Told(2, lambda: len(chief.events("step"))), train_steps=0, checkpoint_every=0) == 42
    (saved,) = chief.steps("checkpoint")
    assert chief.steps("evaluate") == [] and chief.folder.evaluations.read().step == -1
    assert chief.live(train_steps=saved + 8) == ExitCode.TRAINED
    assert chief.steps("evaluate") == [saved, saved + 8]
    # Each checkpoint is judged only once.
    assert chief.live(train_steps=saved + 16) == ExitCode.TRAINED
    assert chief.steps("evaluate") == [saved, saved + 8, saved + 16]


def test_a_run_without_patience_left_does_no_more_steps(chief):
    flags = {"train_steps": 1000, "checkpoint_every": 4, "patience": 1, "learning_rate": 1e-9}
    assert chief.live(**flags) == ExitCode.TRAINED
    assert [(event["step"], event["stopped_early"]) for event in chief.events("end")] == [(8, True)]
    assert chief.live(**flags, attempt="second") == ExitCode.TRAINED
    assert [(event["step"], event["stopped_early"]) for event in chief.events("end", "second")] == [(8, True)]
    assert chief.live(**{**flags, "patience": 2}, attempt="third") == ExitCode.TRAINED
    assert [event["step"] for event in chief.events("end", "third")] == [12]


@pytest.fixture
def scores(monkeypatch):
    """Provide the accuracies of successive evaluations."""
    found = []
    monkeypatch.setattr(state, "evaluate", lambda *_: Score(found.pop(0), 1.0, 64))
    return found


def answers(checkpoint):
    """Return the answers of the sample's model to its sixteen inputs with the parameters of a checkpoint."""
    return tf.nn.softmax(tf.train.load_variable(str(checkpoint), "model/kernel/.ATTRIBUTES/VARIABLE_VALUE")).numpy()


PATIENT = {"train_steps": 1000, "checkpoint_every": 4, "patience": 1}


def test_a_run_that_ends_early_ends_with_its_best(chief, scores):
    scores.extend([0.5, 0.9, 0.7])
    assert chief.live(**PATIENT, accuracy_bound=0.8) == ExitCode.TRAINED
    (end,) = chief.events("end")
    assert (end["step"], end["accuracy"], end["accuracy_step"], end["result"]) == (12, 0.9, 8, "passed")
    assert chief.steps("export") == [8]
    serve = tf.saved_model.load(str(chief.path / "export")).signatures["serving_default"]
    exported = serve(inputs=tf.eye(16))["probabilities"].numpy()
    assert exported == pytest.approx(answers(chief.path / "best/ckpt-8"), abs=1e-6)
    assert exported != pytest.approx(answers(chief.path / "checkpoints/000001/ckpt-12"), abs=1e-6)


def test_a_run_that_does_all_its_steps_ends_with_its_last(chief, scores):
    scores.extend([0.9, 0.7])
    assert chief.live(**{**PATIENT, "train_steps": 8}, accuracy_bound=0.8) == ExitCode.BOUND_NOT_REACHED
    (end,) = chief.events("end")
    assert (end["accuracy"], end["accuracy_step"], end["stopped_early"]) == (0.7, 8, False)
    # The same holds if the chief was killed before the verdict, and the checkpoint is already judged.
    scores.append(0.7)
    assert chief.live(**{**PATIENT, "train_steps": 8}, accuracy_bound=0.8) == ExitCode.BOUND_NOT_REACHED
    assert chief.events("end")[-1]["accuracy_step"] == 8 and not chief.events("end")[-1]["stopped_early"]


def test_a_run_whose_best_is_lost_is_not_judged_by_its_last(chief, scores):
    scores.extend([0.9, 0.7, 0.7])
    assert chief.live(Told(2, lambda: len(chief.events("evaluate"))), **PATIENT) == ExitCode.PREEMPTED
    (chief.path / "best/ckpt-4.index").unlink()
    with pytest.raises(VolumeError, match=r"best/ckpt-4 cannot be read .* Set patience to 0"):
        chief.live(**PATIENT)
    assert chief.events("end") == [] and not (chief.path / "export").exists()


def test_a_full_volume_is_named_and_the_checkpoint_before_stays(chief, monkeypatch):
    write = tf.train.Checkpoint.write

    def full(checkpoint, path, options):
        if path.endswith("ckpt-8"):
            tf.io.TFRecordWriter("/dev/full").write(b"x" * 1_000_000)
        return write(checkpoint, path, options)

    monkeypatch.setattr(tf.train.Checkpoint, "write", full)
    with pytest.raises(VolumeError, match=r"run/checkpoints/000001 cannot be written \(No space left on device\)"):
        chief.live(train_steps=12, checkpoint_every=4)
    monkeypatch.undo()
    assert steps(chief.path / "checkpoints/000001") == [4]


def test_a_verdict_stands_though_the_volume_is_full(chief, monkeypatch):
    touch = Path.touch

    def full(path, **options):
        if path.name == "ended":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return touch(path, **options)

    monkeypatch.setattr(Path, "touch", full)
    assert chief.live(train_steps=4) == ExitCode.TRAINED
    assert chief.events("end")[-1]["step"] == 4 and not chief.folder.attempt.ended


def test_a_chief_that_waits_for_the_evaluator_is_not_judged_hung(chief, monkeypatch):
    monkeypatch.setattr(evaluation, "_EVALUATOR_SECONDS", 1.0)
    beats = []
    monkeypatch.setattr(Watchdog, "beat", lambda _, activity, step=None: beats.append(activity))
    Attempt(chief.path, "first").announce_evaluator()
    assert chief.live(train_steps=4) == ExitCode.TRAINED
    assert beats.count("waiting for the evaluator") > 3


def test_an_account_that_the_evaluator_has_damaged_does_not_undo_a_verdict(chief, monkeypatch):
    Attempt(chief.path, "first").announce_evaluator()
    (chief.path / "evaluations.json").write_text("{")
    assert chief.live(train_steps=4) == ExitCode.TRAINED
    assert chief.events("end")[-1]["step"] == 4


@pytest.mark.parametrize("what", ["checkpoint", "evaluate"])
def test_a_chief_that_is_told_to_stop_at_its_end_does_not_evaluate_or_export_first(chief, what):
    assert chief.live(Told(1, lambda: len(chief.events(what))), train_steps=4, checkpoint_every=0) == 42
    assert chief.events("end") == [] and not (chief.path / "export").exists()
    assert chief.steps("evaluate") == ([4] if what == "evaluate" else [])
    assert chief.live(train_steps=4) == ExitCode.TRAINED
    assert chief.steps("checkpoint") == [4] and chief.steps("end") == [4]


def test_what_tensorflow_holds_is_not_let_go_before_the_process_ends(monkeypatch):
    made = []

    class Training:
        finished, bytes_held = False, {}

        def __init__(self, *_):
            made.append(weakref.ref(self))

        def restore(self):
            pass

        def loop(self):
            pass

        def save(self):
            pass

    monkeypatch.setattr(train, "_Training", Training)
    workload, watchdog = sample.workload(Config()), Watchdog(60, print)
    code = train.train(workload, Cluster(), MetricsLog(), watchdog, Told(1, lambda: 1), LISTENER, None, 0.0)
    gc.collect()
    assert code == ExitCode.PREEMPTED
    assert [each() is not None for each in made] == [True]
