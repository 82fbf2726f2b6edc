"""Tests of the record of evaluations, the best checkpoint, and the time since it was found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.errors import InputError
from engine.run.run_folder import Account, Evaluations


@pytest.fixture
def saved(tmp_path):
    """Write a checkpoint of two files, and return its path."""

    def save(step):
        folder = tmp_path / "checkpoints"
        folder.mkdir(exist_ok=True)
        for ending in ("data-00000-of-00001", "index"):
            (folder / f"ckpt-{step}.{ending}").write_text(f"{step} {ending}")
        return folder / f"ckpt-{step}"

    return save


def best(run):
    return sorted(each.name for each in (run / "best").iterdir())


def test_the_best_is_kept_and_the_others_are_counted(tmp_path, saved):
    evaluations = Evaluations(tmp_path, 1)
    assert evaluations.read() == Account(1)
    for step, accuracy in ((200, 0.5), (400, 0.9), (600, 0.9), (800, 0.7)):
        evaluations.add(step, accuracy, saved(step))
    assert Evaluations(tmp_path, 1).read() == Account(1, 800, 400, 0.9, without_gain=2)
    assert best(tmp_path) == ["ckpt-400.data-00000-of-00001", "ckpt-400.index"]
    assert (tmp_path / "best/ckpt-400.index").read_text() == "400 index"


def test_a_step_that_is_judged_again_counts_once(tmp_path, saved):
    evaluations = Evaluations(tmp_path, 1)
    evaluations.add(400, 0.9, saved(400))
    account = evaluations.add(600, 0.8, saved(600))
    assert evaluations.add(600, 0.8, saved(600)) == evaluations.add(400, 1.0, saved(400)) == account


def test_a_run_that_starts_over_forgets_what_was_before(tmp_path, saved):
    Evaluations(tmp_path, 1).add(400, 0.9, saved(400))
    again = Evaluations(tmp_path, 3)
    assert again.read() == Account(3)
    assert again.add(200, 0.1, saved(200)).best_step == 200
    assert best(tmp_path) == ["ckpt-200.data-00000-of-00001", "ckpt-200.index"]


def test_a_checkpoint_that_was_removed_meanwhile_is_not_counted(tmp_path, saved):
    evaluations = Evaluations(tmp_path, 1)
    before = evaluations.add(200, 0.5, saved(200))
    with pytest.raises(FileNotFoundError):
        evaluations.add(400, 0.9, tmp_path / "checkpoints/ckpt-400")
    assert evaluations.read() == before and best(tmp_path)[-1] == "ckpt-200.index"


def test_a_damaged_account_is_named(tmp_path):
    (tmp_path / "evaluations.json").write_text("{}")
    with pytest.raises(InputError, match=r"evaluations\.json is damaged .* Remove it"):
        Evaluations(tmp_path, 1).read()


def test_a_folder_that_cannot_be_written_is_named(tmp_path, saved):
    (tmp_path / "best").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        Evaluations(tmp_path, 1).add(200, 0.5, saved(200))


def test_the_best_is_on_the_disk_before_the_account_names_it(tmp_path, saved, monkeypatch):
    checkpoint, seen = saved(200), []
    monkeypatch.setattr(os, "fsync", lambda number: seen.append(Path(os.readlink(f"/proc/self/fd/{number}")).name))
    Evaluations(tmp_path, 1).add(200, 0.5, checkpoint)
    assert seen == [tmp_path.name, "part", "part", "best", "evaluations.part", tmp_path.name]
