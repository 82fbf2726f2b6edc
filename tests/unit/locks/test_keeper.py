"""The keeper: both locks or none, what it says of them, and that they end with the run, killed or not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.locks.samples import OTHER, Leases, Ticking
from trainyard.core.errors import TrainyardError
from trainyard.core.waiter import wait_until
from trainyard.kube.api import KubeError
from trainyard.site_lock import keeper, lease, machine_lock
from trainyard.site_lock.holder import Busy
from trainyard.site_lock.keeper import Keeper, Wanted

SITE = "/srv/mine"
WANTED = Wanted(SITE, "site", "run-1", os.getpid(), kubeconfig="/etc/kubeconfig", revision="3f2a91c")


def kept(server: Leases, clock: Ticking, where: Path, wanted: Wanted = WANTED) -> Keeper:
    return Keeper(wanted, connected=lambda _: server.api, clock=clock, where=where)


def test_both_locks_are_taken_and_given_back(tmp_path: Path) -> None:
    server = Leases()
    mine = kept(server, Ticking(), tmp_path)
    taken = mine.take()
    assert (taken.leased, taken.notes, taken.lost) == (True, (), "")
    assert machine_lock.holder(SITE, tmp_path) == taken
    found = lease.read(server.api)
    assert found and (found.run_id, found.revision, found.place) == ("run-1", "3f2a91c", taken.place)
    mine.give_back()
    assert (machine_lock.holder(SITE, tmp_path), server.lease) == (None, None)


def test_with_the_lease_in_other_hands_the_lock_of_the_machine_is_not_kept_either(tmp_path: Path) -> None:
    server = Leases()
    lease.Lease(server.api, OTHER, Ticking()).take()
    with pytest.raises(Busy, match="controller1"):
        kept(server, Ticking(), tmp_path).take()
    machine_lock.acquire(SITE, "site", "run-3", where=tmp_path).release()
    assert lease.read(server.api) == replace(OTHER, leased=True)


def test_a_takeover_is_reported(tmp_path: Path) -> None:
    server = Leases()
    lease.Lease(server.api, OTHER, Ticking()).take()
    (note,) = kept(server, Ticking(9000.0), tmp_path).take().notes
    assert "taken over: reprovision by robot on controller1" in note


@pytest.mark.parametrize("status", [0, 403, 503])
def test_without_an_api_the_lock_of_the_machine_counts_and_that_is_said(tmp_path: Path, status: int) -> None:
    server = Leases()
    server.down = [status]
    mine = kept(server, Ticking(), tmp_path)
    taken = mine.take()
    assert not taken.leased
    assert taken.notes[0].startswith("Only the lock of this machine counts, because there is no lease: ")
    mine.renew()
    mine.give_back()
    assert (machine_lock.holder(SITE, tmp_path), server.lease) == (None, None)


def test_in_check_mode_the_cluster_is_not_asked(tmp_path: Path) -> None:
    def connected(_: str) -> None:
        raise AssertionError

    wanted = replace(WANTED, kubeconfig="")
    mine = Keeper(wanted, connected=connected, clock=Ticking(), where=tmp_path)  # type: ignore[arg-type]
    assert mine.take().notes == ()
    mine.give_back()


def test_a_run_that_holds_the_machine_s_lock_itself_gets_the_lease_alone(tmp_path: Path) -> None:
    server = Leases()
    with machine_lock.acquire(SITE, "reprovision", "run-1", where=tmp_path) as own:
        mine = kept(server, Ticking(), tmp_path, replace(WANTED, held=own.holder))
        assert mine.take().leased
        mine.give_back()
        assert server.lease is None
        assert machine_lock.holder(SITE, tmp_path) == own.holder


def test_what_becomes_of_the_lease_can_be_read(tmp_path: Path) -> None:
    server, clock = Leases(), Ticking()
    mine = kept(server, clock, tmp_path)
    mine.take()

    def lost() -> str:
        found = machine_lock.holder(SITE, tmp_path)
        assert found
        return found.lost

    for expected in ("", "", "", "The lease could not be renewed for 60 s"):
        clock.sleep(15)
        server.down = [0]
        mine.renew()
        assert lost().startswith(expected) if expected else lost() == ""
    # The server is back, and nobody has come in between.
    mine.renew()
    assert lost() == ""
    lease.Lease(server.api, OTHER, Ticking(9000.0)).take()
    mine.renew()
    assert lost().startswith("The lease was taken over: reprovision by robot")
    mine.renew()
    mine.give_back()
    assert lease.read(server.api) == replace(OTHER, leased=True)


def test_a_server_that_is_gone_at_the_end_keeps_nothing(tmp_path: Path) -> None:
    server = Leases()
    mine = kept(server, Ticking(), tmp_path)
    mine.take()
    server.down = [0]
    mine.give_back()
    assert machine_lock.holder(SITE, tmp_path) is None
    with pytest.raises(KubeError):
        server.down = [0]
        lease.read(server.api)


@pytest.fixture
def run() -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands for a run."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def gone(site: str) -> bool:
    return wait_until(lambda: machine_lock.path_of(site).read_text(encoding="utf-8"), lambda text: not text,
                      what="the lock to be given back", timeout=120, interval=0.05) == ""  # fmt: skip


def test_a_real_keeper_gives_the_locks_back_when_the_run_is_killed(
    tmp_path: Path, run: subprocess.Popen[bytes]
) -> None:
    wanted = Wanted(str(tmp_path), "site", "run-1", run.pid, kubeconfig=str(tmp_path / "none"))
    taken, pid = keeper.start(wanted)
    assert (taken.pid, taken.run_id) == (run.pid, "run-1")
    assert "There is no kubeconfig" in taken.notes[0]
    with pytest.raises(Busy, match=f"process {run.pid}, run run-1"):
        keeper.start(replace(wanted, run_id="run-2", pid=os.getpid()))
    run.kill()
    assert gone(str(tmp_path))
    assert keeper.stop(pid)
    machine_lock.path_of(str(tmp_path)).unlink()


def test_a_real_keeper_is_told_to_end(tmp_path: Path, run: subprocess.Popen[bytes]) -> None:
    _, pid = keeper.start(Wanted(str(tmp_path), "site", "run-1", run.pid))
    assert keeper.stop(pid)
    assert machine_lock.holder(str(tmp_path)) is None
    assert run.poll() is None
    assert keeper.stop(pid)
    machine_lock.path_of(str(tmp_path)).unlink()


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("raise SystemExit(1)", "it ended without an answer"),
        ("import sys; sys.stdin.read(); raise OSError('no\\x1b[2Jlock')", "OSError: nolock"),
        ("import sys; sys.stderr.write('x' * 100000 + '\\n\\nlast\\n\\n')", "last"),
        ("import time; time.sleep(60)", "no answer within 1 s"),
    ],
)
def test_a_keeper_that_does_not_start_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, said: str
) -> None:
    monkeypatch.setattr(keeper, "PROGRAM", ("-c", program))
    with pytest.raises(TrainyardError) as caught:
        keeper.start(Wanted(str(tmp_path), "site", "run-1", os.getpid()), seconds=1 if "sleep" in program else 60)
    assert caught.value.message == f"The process that keeps the locks did not start: {said}."
