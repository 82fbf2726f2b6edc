"""The locks of a run: which it takes, and how it notices that it has lost them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.reprovision.sites import site
from trainyard.drift.site_access import locked
from trainyard.site_lock import keeper, machine_lock
from trainyard.site_lock.holder import Busy, Holder, here


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(machine_lock, "folder", lambda: tmp_path / "locks")
    return tmp_path


def test_a_look_takes_the_lock_of_the_machine_alone(folder: Path) -> None:
    ours = site(folder / "state")
    with locked(ours, "run1", changes=False) as locks:
        found = machine_lock.holder(ours.site_dir)
        assert found is not None and (found.verb, found.run_id, found.leased) == ("reprovision", "run1", False)
        assert locks.lost() == ""
    assert machine_lock.holder(ours.site_dir) is None


def test_who_holds_it_is_named(folder: Path) -> None:
    ours = site(folder / "state")
    # The lock of another process: this one's own would be taken again.
    with (
        machine_lock.acquire(ours.site_dir, "site", "other", pid=os.getppid()),
        pytest.raises(Busy, match=r"site by .* run other"),
        locked(ours, "run1", changes=False),
    ):
        raise AssertionError("it was not refused")


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ({}, ""),
        ({"lost": "The lease was deleted."}, "The lease was deleted."),
        ({"run_id": "another"}, "The process that keeps the locks of this run has ended."),
        ({"pid": 0}, "The process that keeps the locks of this run has ended."),
    ],
)
def test_a_run_that_changes_something_has_a_keeper(folder: Path, changes: dict[str, object], lost: str) -> None:
    ours, stopped, asked = site(folder / "state"), [], []

    def start(wanted: keeper.Wanted) -> tuple[Holder, int]:
        asked.append(wanted)
        held.note(leased=True)
        return held.holder, os.getpid()

    def stop(pid: int) -> bool:
        stopped.append(pid)
        return True

    held = machine_lock.acquire(ours.site_dir, "reprovision", "run1")
    with locked(ours, "run1", changes=True, revision="3f2a", start=start, stop=stop) as locks:
        held.note(**changes)
        assert (locks.holder.leased, locks.lost()) == (True, lost)
    held.release()
    (wanted,) = asked
    assert (wanted.kubeconfig, wanted.pid, wanted.revision) == (ours.kubeconfig, os.getpid(), "3f2a")
    assert stopped == [os.getpid()]


def test_a_keeper_that_has_ended(folder: Path) -> None:
    ours = site(folder / "state")
    gone = replace(here("reprovision", "run1", 0.0), leased=True)
    with locked(ours, "run1", changes=True, start=lambda _: (gone, 0), stop=bool) as locks:
        assert "has ended" in locks.lost()
