"""The one deadline of a run, with steps that are slower than they should be."""

from __future__ import annotations

import stat
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.unit.reprovision.origins import Origin, bare
from tests.unit.reprovision.sites import Stopped, site
from tests.unit.reprovision.worlds import World, cluster
from trainyard.core import notifier
from trainyard.core.errors import TrainyardError, WaitError
from trainyard.drift import node_state
from trainyard.drift import stopping as deadlines
from trainyard.drift.report import Revision
from trainyard.drift.report_store import Store
from trainyard.drift.stopping import CLOSING_SECONDS, VARIABLE, Deadline, OutOfTimeError, deadline
from trainyard.schedule import session as perform
from trainyard.schedule.repository import Repository

ROLE = Path(__file__).resolve().parents[3] / "roles" / "reprovision"


@pytest.mark.parametrize(
    ("environ", "ends"),
    [({}, 160.0), ({VARIABLE: "130.5"}, 130.5), ({VARIABLE: "500"}, 160.0), ({VARIABLE: "never"}, 160.0)],
)
def test_the_earlier_of_two_counts(environ: Mapping[str, str], ends: float) -> None:
    clock = Stopped()
    clock.now = 100.0
    assert deadline(60, clock, environ).ends == ends


def test_what_is_left_bounds_a_step() -> None:
    clock = Stopped()
    ends = Deadline(clock.now + 100, clock)
    assert (ends.bound(60), ends.bound(120), ends.closing) == (60, 100, 100 + CLOSING_SECONDS)
    clock.now += 100
    with pytest.raises(OutOfTimeError, match="Set reprovision_timeout to more"):
        ends.bound(60)


def test_the_unit_has_more_than_the_run() -> None:
    """systemd must not end a run that is about to write its report."""
    unit = (ROLE / "templates" / "service.j2").read_text(encoding="utf-8")
    assert "TimeoutStartSec={{ reprovision_timeout | int + 300 }}" in unit and CLOSING_SECONDS < 300


def test_a_lock_that_is_held_is_waited_for_until_the_deadline_alone(tmp_path: Path) -> None:
    held, clock = bare(tmp_path), Stopped()
    waits = Repository(held.path, held.worktrees, clock, Deadline(clock.now + 20, clock))
    with held.locked(), pytest.raises(WaitError, match="Waited 20 s"), waits.locked():
        pass


def _slow(folder: Path, monkeypatch: pytest.MonkeyPatch, verb: str, seconds: int) -> None:
    """A git that takes its time for one verb."""
    real = subprocess.run(["sh", "-c", "command -v git"], capture_output=True, text=True, check=True).stdout.strip()
    folder.mkdir()
    program = folder / "git"
    program.write_text(f'#!/bin/sh\ncase " $* " in *" {verb} "*) sleep {seconds};; esac\nexec {real} "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


@pytest.mark.parametrize("verb", ["fetch", "verify-commit"])
def test_a_git_that_hangs_ends_with_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    origin = Origin(tmp_path)
    there = bare(tmp_path)
    assert there.take(origin.wanted()).may_converge
    origin.commit("v1.36.3", "owner")
    _slow(tmp_path / "slow", monkeypatch, verb, 30)
    began = time.monotonic()
    short = Repository(there.path, there.worktrees, deadline=Deadline(began + 3))
    with pytest.raises(TrainyardError) as caught:
        taken = short.take(origin.wanted())
        # There may be a moment left to fall back to the last good revision, and none to check it out.
        time.sleep(max(began + 3 - time.monotonic(), 0))
        short.check_out(taken.commit, "run")
    assert isinstance(caught.value, OutOfTimeError) and time.monotonic() - began < 6


def test_hooks_share_what_is_left() -> None:
    clock, calls = Stopped(), list[float]()
    ends = Deadline(clock.now - CLOSING_SECONDS + 40, clock)

    def command(argv: list[str], *, timeout: float, **_: Any) -> Any:
        calls.append(timeout)
        clock.now += timeout

    def post(address: str, body: bytes, seconds: float) -> int:
        calls.append(seconds)
        clock.now += seconds
        raise TimeoutError

    called = [{"name": "a", "command": ["a"]}, {"name": "b", "webhook": "https://b"}, {"name": "c", "command": ["c"]}]
    failed = notifier.call_hooks(called, {}, command=command, post=post, clock=clock, left=lambda: ends.closing)
    assert calls == [30.0, 10.0]
    assert [str(each) for each in failed] == [
        "the hook b failed: no answer within 10 s; the time of the run was up",
        "the hook c failed 0 times: the time of the run was up",
    ]


def test_waits_for_a_node_end_with_the_run() -> None:
    clock = Stopped()
    began = clock.now
    assert node_state.wait_for_node(lambda: cluster(unready=("worker1",)), "worker1", (), clock, 20).endswith(
        "20 s after its repair"
    )
    assert node_state.why_not(cluster(starts=False), "worker1", "pause", clock, 15)
    assert clock.now - began <= 35


class Slow(World):
    """Each playbook takes all the time that it is given."""

    def __init__(self, clock: Stopped) -> None:
        super().__init__({"worker1": ["a"]})
        self.clock, self.given = clock, list[float]()

    def __call__(self, playbook: str, **options: Any) -> Any:
        self.given.append(options["timeout"])
        self.clock.now += options["timeout"]
        return super().__call__(playbook, **options)


@pytest.mark.parametrize("young", [False, True])
def test_a_run_keeps_the_deadline_of_its_unit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, young: bool) -> None:
    """The wait after a boot comes out of the same time as the look."""
    clock, store = Stopped(), Store(tmp_path / "state")
    monkeypatch.setattr(
        perform, "deadline", lambda seconds, now: deadlines.deadline(seconds, now, {VARIABLE: f"{end}"})
    )
    end, world = clock.now + 500, Slow(clock)
    session = perform.perform(
        site(store.folder), store, "report", Revision("a" * 40, "main", True), clock=clock, play=world,
        young=lambda: young,
    )  # fmt: skip
    assert world.given == ([360.0, 140.0] if young else [500.0])
    assert clock.now <= end + CLOSING_SECONDS and session.report["state"] == "complete"
