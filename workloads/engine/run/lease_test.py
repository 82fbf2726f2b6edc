"""Tests of chiefs that compete for one folder, as threads and as processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.run import run_lease
from engine.run.run_lease import Lease

HOLDER = """
import sys, time
from pathlib import Path
from engine.run import run_lease
run_lease.RENEW_SECONDS, run_lease.EXPIRE_SECONDS = 0.05, 0.5
print(run_lease.Lease(Path(sys.argv[1]), print).acquire(), flush=True)
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_lease, "RENEW_SECONDS", 0.05)
    monkeypatch.setattr(run_lease, "EXPIRE_SECONDS", 0.5)
    monkeypatch.setattr(run_lease, "LOOK_SECONDS", 0.02)


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start another process that holds the folder."""
    path = {**os.environ, "PYTHONPATH": str(Path(run_lease.__file__).parents[2])}
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True, env=path
    ) as it:
        assert it.stdout
        assert it.stdout.readline() == "1\n"
        yield it
        it.kill()


def test_the_first_takes_it_at_once_and_the_next_after_a_release(tmp_path: Path) -> None:
    first = Lease(tmp_path / "lease", print)
    assert first.acquire() == 1
    assert first.held()
    first.release()
    begin = time.monotonic()
    assert Lease(tmp_path / "lease", print).acquire() == 2
    assert time.monotonic() - begin < run_lease.EXPIRE_SECONDS
    assert not first.held()


def test_a_holder_that_is_alive_is_given_time_then_overtaken_and_learns_of_it(
    tmp_path: Path, holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_lease, "PATIENCE_SECONDS", 1.5)
    begin = time.monotonic()
    newcomer = Lease(tmp_path, print)
    assert newcomer.acquire() == 2
    assert time.monotonic() - begin >= 1.5
    assert holder.stdout
    assert "epoch 2" in holder.stdout.readline()
    assert newcomer.held()


def test_a_killed_holder_is_followed_after_its_time(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    holder.kill()
    assert Lease(tmp_path, print).acquire() == 2


def test_a_holder_that_stood_still_learns_that_it_was_overtaken(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    holder.send_signal(signal.SIGSTOP)
    assert Lease(tmp_path, print).acquire() == 2
    holder.send_signal(signal.SIGCONT)
    assert holder.stdout
    assert "epoch 2" in holder.stdout.readline()


def test_an_epoch_whose_file_was_tidied_away_is_not_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for epoch in (5, 6, 7, 8):
        (tmp_path / f"{epoch:06d}").write_bytes(b"released\n")
    mine = Lease(tmp_path, print)
    looks, newest = iter([3]), mine._newest_epoch
    monkeypatch.setattr(mine, "_newest_epoch", lambda: next(looks, None) or newest())
    assert mine.acquire() == 9
    assert not (tmp_path / "000004").exists()
    mine.release()


def test_of_many_one_gets_each_epoch(tmp_path: Path) -> None:
    def take(_: int) -> int:
        mine = Lease(tmp_path, print)
        epoch = mine.acquire()
        mine.release()
        return epoch

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(take, range(24))) == list(range(1, 25))
    assert len(list(tmp_path.iterdir())) <= run_lease.KEPT + 8
