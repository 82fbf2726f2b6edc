"""What a run may do, what it waits for, and who hears of it afterwards."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.unit.reprovision.sites import NOW, Stopped, site
from tests.unit.reprovision.worlds import World, leased
from trainyard.core.errors import TrainyardError
from trainyard.drift.report import Revision, begun
from trainyard.drift.report_run import Session
from trainyard.drift.report_store import Store
from trainyard.schedule import notify
from trainyard.schedule import session as boot
from trainyard.schedule import session as perform
from trainyard.schedule.notify import Failure
from trainyard.site_lock import machine_lock

GOOD = Revision("3f2a91c" + "0" * 33, "main", True)
HOUR = datetime.fromtimestamp(NOW, UTC).hour
OPEN, SHUT = ({"from": f"{HOUR + shift:02}:00", "to": f"{HOUR + shift + 1:02}:00"} for shift in (0, 2))
DRIFT = {"worker1": ["a"]}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(machine_lock, "folder", lambda: tmp_path / "locks")
    return Store(tmp_path / "state")


def run(store: Store, world: World, mode: str = "report", revision: Revision = GOOD, **named: Any) -> Session:
    young, hosts, clock = named.pop("young", bool), named.pop("hosts", ()), named.pop("clock", None) or Stopped()
    there = site(store.folder, **named)
    return perform.perform(there, store, mode, revision, hosts=hosts, clock=clock, play=world, young=young)


@pytest.mark.parametrize(
    ("named", "drift", "mode", "status", "told"),
    [
        ({}, DRIFT, "converge", None, ""),
        ({"windows": [OPEN]}, DRIFT, "converge", None, ""),
        ({"windows": [SHUT]}, DRIFT, "report", 3, "held back: outside the windows; the next opens at "),
        ({"windows": [SHUT]}, {}, "report", 0, "clean"),
        ({"revision": replace(GOOD, may_converge=False, refused="It is not signed.")}, DRIFT, "report", 1, "2 items"),
        ({"revision": replace(GOOD, may_converge=False, note="No answer.")}, DRIFT, "report", 2, "unknown: No ans"),
    ],
)
def test_what_becomes_of_a_converge(
    store: Store, monkeypatch: pytest.MonkeyPatch, named: Any, drift: Any, mode: str, status: int | None, told: str
) -> None:
    """Without a lease one is refused by itself, so here it is enough to know that it was begun."""
    begun: list[str] = []
    real = perform.locked

    def locked(there: Any, name: str, *, changes: bool, revision: str, start: Any) -> Any:
        return leased() if changes else real(there, name, changes=False, revision=revision, start=start)

    monkeypatch.setattr(perform, "locked", locked)
    monkeypatch.setitem(perform.MODES, "converge", lambda session: begun.append(session.report["mode"]) or 0)
    monkeypatch.setattr(notify, "follow", lambda session: None)
    session = run(store, World(drift), "converge", **named)
    assert (session.report["mode"], session.report["asked"], begun == ["converge"]) == (
        mode, "converge", mode == "converge",
    )  # fmt: skip
    if status is not None:
        assert session.report["exit_status"] == status and session.report["headline"].startswith(told)


def test_a_converge_that_takes_longer_than_its_window_has_left(store: Store) -> None:
    for number in range(3):
        name = store.begin(NOW + number, begun("converge", "converge", NOW))
        report = store.report(name)
        assert report is not None
        store.write_json(f"runs/{name}/report.json", {**report, "state": "complete", "exit_status": 0, "seconds": 9000})
    assert "half of the last runs took more than 9000 s" in perform.why_not(
        site(store.folder, windows=[OPEN]), store, NOW
    )


@pytest.mark.parametrize(("young", "calls"), [(True, ["run all", "check all"]), (False, ["check all"])])
def test_after_a_boot_it_waits_for_the_hosts(store: Store, young: bool, calls: list[str]) -> None:
    world = World({})
    assert run(store, world, young=lambda: young).report["exit_status"] == 0
    assert world.calls == calls


@pytest.mark.parametrize(
    ("said", "uptime", "young"),
    [("100000000", 400, True), ("100000000", 1100, False), ("", 400, True), ("", 1100, False), ("0", 901, False)],
)
def test_a_machine_that_was_just_started(said: str, uptime: float, young: bool) -> None:
    clock = Stopped()
    clock.now = uptime
    assert boot.is_young(clock, lambda: said) is young


def test_a_machine_without_systemd() -> None:
    def show() -> str:
        raise TrainyardError("There is no program systemctl.")

    clock = Stopped()
    clock.now = 100
    assert boot.is_young(clock, show)


class Ears:
    """Hooks that remember what they were told."""

    def __init__(self, *failures: Failure) -> None:
        self.failures, self.heard = failures, [("", "")] * 0
        self.last: Mapping[str, Any] = {}

    def __call__(self, hooks: Any, message: Mapping[str, Any], *, clock: Any, left: Any) -> Any:
        assert 0 < left() <= 3600 + 240
        self.heard.append((message["kind"], message["state"]))
        self.last = message
        return self.failures


def test_a_change_of_state_is_told_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    ears, clock = Ears(), Stopped()
    monkeypatch.setattr(notify, "follow", partial(notify.follow, tell=ears))
    nights = [{}, DRIFT, DRIFT, {}, {"worker1": ["x"]}, {"worker1": ["x"]}]
    for drift in nights:
        run(store, World(drift, kinds={"x": "else"}), clock=clock)
        clock.now += 86400
    assert ears.heard == [("change", "drift"), ("change", "clean"), ("change", "person"), ("reminder", "person")]
    assert (ears.last["site"], ears.last["items"], ears.last["hosts"]) == ("mine", {"person": 1}, ["worker1"])
    assert json.dumps(ears.last) and ears.last["text"].startswith("mine: still: an operator is needed. 1 item of drift")


def test_a_run_of_some_hosts_is_told_to_nobody(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    ears = Ears()
    monkeypatch.setattr(notify, "follow", partial(notify.follow, tell=ears))
    run(store, World(DRIFT), hosts=["worker1"])
    assert ears.heard == [] and notify.load(store.folder / notify.STATE) is None


def test_a_hook_that_fails_is_noted_and_changes_no_status(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    ears = Ears(Failure("pager", 3, "no answer within 10 s"))
    monkeypatch.setattr(notify, "follow", partial(notify.follow, tell=ears))
    session = run(store, World(DRIFT))
    kept = store.report(session.name)
    assert kept == session.report and kept["exit_status"] == 1
    assert kept["notes"] == ["the hook pager failed 3 times: no answer within 10 s"]
    assert "the hook pager failed" in (store.runs / session.name / "report.md").read_text()


def test_metrics(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    due = lambda schedule, now: now + 86400  # noqa: E731
    monkeypatch.setattr(notify, "follow", partial(notify.follow, due=due))
    path = tmp_path / "trainyard.prom"
    session = run(store, World(DRIFT), metrics_file=str(path))
    told = path.read_text()
    values = {"exit_status": 1, "interval_seconds": 86400, "lock_refused": 0, "last_success_timestamp_seconds": NOW}
    for name, value in values.items():
        assert f'trainyard_reprovision_{name}{{site="mine"}} {value:.15g}\n' in told
    notify.refused(session.site, store, due=due)
    assert 'trainyard_reprovision_lock_refused{site="mine"} 1\n' in path.read_text()
    run(store, World({}), hosts=["worker1"])
    store.begin(NOW + 5, begun("converge", "converge", NOW + 5))
    notify.refused(session.site, store, due=due)
    # Neither a run that is at work, nor one of some hosts, says how the site is.
    assert 'trainyard_reprovision_exit_status{site="mine"} 1\n' in path.read_text()
    gone = run(store, World(DRIFT), metrics_file=str(path / "below a file"))
    assert gone.report["exit_status"] == 1 and gone.report["notes"][-1].startswith("the metrics cannot be written")
