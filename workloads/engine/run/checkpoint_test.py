"""Tests of the order in which checkpoints reach the disk, and of the checkpoints that are kept."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from engine.errors import StalledError, VolumeError
from engine.run.checkpoint import ChiefCheckpoint, kept

tf = pytest.importorskip("tensorflow")


class Disk:
    """A record of names that reached the disk since the last query, and of removed ones, in order."""

    def __init__(self, monkeypatch):
        self._seen = []
        fsync, unlink = os.fsync, Path.unlink

        def synced(number):
            target = Path(os.readlink(f"/proc/self/fd/{number}"))
            folder = stat.S_ISDIR(os.fstat(number).st_mode)
            self._seen.append(f"{target.name}/" if folder else target.name)
            fsync(number)

        def removed(path, **options):
            self._seen.append(f"-{path.name}")
            unlink(path, **options)

        monkeypatch.setattr(os, "fsync", synced)
        monkeypatch.setattr(Path, "unlink", removed)

    def seen(self):
        seen, self._seen = self._seen, []
        return seen


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def files(step):
    return [f"ckpt-{step}.data-00000-of-00001", f"ckpt-{step}.index"]


def made(folder, clock=Clock()):  # noqa: B008
    variable = tf.Variable(0, dtype=tf.int64)
    return variable, ChiefCheckpoint(folder, [folder], "/job:localhost", clock=clock, value=variable)


def steps(folder):
    return sorted(int(each.stem.partition("-")[2]) for each in folder.glob("*.index"))


def test_a_checkpoint_is_on_the_disk_before_it_counts_and_before_an_older_one_goes(tmp_path, monkeypatch):
    disk = Disk(monkeypatch)
    folder = tmp_path / "checkpoints/000001"
    _, checkpoint = made(folder)
    checkpoint.save(1)
    listed = ["checkpoint.part", "000001/"]
    assert disk.seen() == ["checkpoints/", f"{tmp_path.name}/", *files(1), "000001/", *listed]
    for step in (2, 3, 4):
        checkpoint.save(step)
    disk.seen()
    checkpoint.save(5)
    assert disk.seen() == [*files(5), "000001/", *listed, *(f"-{name}" for name in reversed(files(2)))]
    assert steps(folder) == [1, 3, 4, 5]
    assert tf.train.latest_checkpoint(str(folder)) == str(folder / "ckpt-5")


@pytest.mark.parametrize("every", [1, 2, 5, 29, 59])
def test_one_that_stays_is_older_than_a_minute(every):
    saved = {}
    for now in range(0, 600, every):
        saved[now] = now
        saved = {step: moment for step, moment in saved.items() if step in kept(saved)}
        assert list(saved)[-3:] == [step for step in (now - 2 * every, now - every, now) if step >= 0]
        assert len(saved) <= 5
        if now >= 60:
            assert 60 <= now - min(saved) < 120 + 2 * every


def test_checkpoints_that_are_a_minute_apart_are_three():
    assert kept(dict.fromkeys((1, 2, 3), 0.0) | {4: 60.0}) == {2, 3, 4}
    assert kept({1: 0.0, 2: 60.0, 3: 120.0, 4: 180.0}) == {2, 3, 4}


def test_where_all_of_the_newest_are_torn_a_run_goes_on_from_the_anchor(tmp_path):
    clock = Clock()
    value, checkpoint = made(tmp_path, clock)
    for step in range(0, 200, 5):
        clock.now = 1000.0 + step
        value.assign(step)
        checkpoint.save(step)
    assert steps(tmp_path) == [135, 180, 185, 190, 195]
    for step, torn in ((195, b""), (190, b"\0" * 50), (185, b""), (180, b"\0" * 10)):
        for name in files(step):
            (tmp_path / name).write_bytes(torn)
    value, checkpoint = made(tmp_path)
    assert checkpoint.restore() == str(tmp_path / "ckpt-135") and value.numpy() == 135


@pytest.mark.parametrize(("number", "kind"), [(28, VolumeError), (5, StalledError)])
def test_what_the_disk_has_not_taken_is_no_checkpoint(tmp_path, monkeypatch, number, kind):
    _, checkpoint = made(tmp_path)
    checkpoint.save(1)

    def fails(_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(kind, match="cannot be written"):
        checkpoint.save(2)
    assert "ckpt-2" not in (tmp_path / "checkpoint").read_text(encoding="utf-8")
