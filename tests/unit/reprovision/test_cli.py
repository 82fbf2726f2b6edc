"""`trainyard reprovision`: what is called, what is printed, and the status with which it ends."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.unit.reprovision.sites import NOW, Playbook, Stopped, ended, recorded, site
from trainyard.cli import reprovision
from trainyard.cli.main import main
from trainyard.drift import repair_plan
from trainyard.drift.report import Revision
from trainyard.drift.report_store import Store
from trainyard.schedule.session import perform
from trainyard.site_lock import machine_lock

WORKERS = ("worker1", "worker2", "worker3")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    store = Store(tmp_path / "state")
    monkeypatch.setattr(machine_lock, "folder", lambda: tmp_path / "locks")
    monkeypatch.setattr(reprovision, "site_of", lambda _inventory, **_: site(store.folder))
    monkeypatch.setattr(reprovision, "of_checkout", lambda _root: Revision("3f2a91c" + "0" * 33, "main", True))
    yield store


def plays(monkeypatch: pytest.MonkeyPatch, *turns: Any) -> Playbook:
    play = Playbook(*turns)

    given = partial(perform, play=play, clock=Stopped(), young=bool)
    monkeypatch.setattr(reprovision, "perform", given)
    return play


def call(*words: str) -> Result:
    return CliRunner().invoke(main, ["reprovision", *words])


def test_run_shows_the_report_and_ends_with_its_status(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    plays(monkeypatch, recorded("role") + ended(*WORKERS), ended(*WORKERS))
    first = call("run")
    assert first.exit_code == 1 and "base: sysctl kernel.ostype" in first.stdout and "Linux -> Plan9" in first.stdout
    assert "revision 3f2a91c (signed)" in first.stdout
    assert first.stdout.rstrip().endswith("report.md") and Path(first.stdout.split()[-1]).is_file()
    second = call("run", "--mode", "report")
    assert second.exit_code == 0 and "exit 0: clean" in second.stdout


def test_some_hosts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    play = plays(monkeypatch, ended("worker1", "worker2"))
    assert call("run", "--hosts", "worker1, worker2").exit_code == 0
    assert play.calls[0]["site_hosts"] == ("worker1", "worker2")
    wrong = call("run", "--hosts", "worker9")
    assert wrong.exit_code == 2 and "no host worker9" in wrong.stderr


def test_a_second_run_at_the_same_time_ends_with_4_and_nothing_else(store: Store) -> None:
    with store.locked():
        done = call("run")
    assert (done.exit_code, done.stdout) == (4, "") and "Another run" in done.stderr


def test_a_disk_that_is_full_ends_with_2(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    plays(monkeypatch, ended(*WORKERS))
    (store.folder / "runs").parent.mkdir(mode=0o700)
    (store.folder / "runs").write_text("a file in the way")
    done = call("run")
    assert done.exit_code == 2 and "cannot be" in done.stderr


def test_what_nobody_has_expected_ends_with_2_and_is_masked(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reprovision, "site_of", lambda _inventory, **_: site(store.folder, frozenset({"canary-4711"})))
    plays(monkeypatch, OSError("No space left for canary-4711"))
    done = call("run")
    assert (done.exit_code, done.stderr) == (2, "Error: OSError: No space left for ********\n")
    monkeypatch.setattr(reprovision, "site_of", lambda _inventory, **_: 1 / 0)
    assert call("run").exit_code == 2


def test_show(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    plays(monkeypatch, recorded("role") + ended(*WORKERS), ended(*WORKERS))
    nothing = call("show")
    assert nothing.exit_code == 2 and "No run has been made yet." in nothing.stderr
    call("run"), call("run")
    young, old = (call("show", "--list", "--json"), call("show", "--list"))
    names = [each["id"] for each in json.loads(young.stdout)["reports"]]
    assert sorted(names) == sorted(store.names()) and all(name in old.stdout for name in names)
    drifted = next(each["id"] for each in json.loads(young.stdout)["reports"] if each["exit_status"] == 1)
    document = json.loads(call("show", drifted, "--json").stdout)
    assert document == store.report(drifted) and document["items"][0]["first_seen"] == NOW
    assert call("show", drifted, "--markdown").stdout == (store.runs / drifted / "report.md").read_text()
    assert "kernel.ostype" in call("show", drifted).stdout
    for words, status, told in (
        (["nothing"], 2, "no report nothing"),
        (["../../etc"], 2, "no report"),
        (["--json", "--markdown"], 2, "one of --json and --markdown"),
    ):
        done = call("show", *words)
        assert (done.exit_code, told in done.stderr) == (status, True)


def test_status(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call("status").exit_code == 2
    plays(monkeypatch, recorded("role") + ended(*WORKERS), ended(*WORKERS))
    call("run")
    found = call("status", "--json")
    assert found.exit_code == 1 and json.loads(found.stdout)["last"]["exit_status"] == 1
    assert "1 item, the oldest since" in call("status").stdout


def test_status_says_who_holds_the_site(store: Store) -> None:
    with machine_lock.acquire(site(store.folder).site_dir, "site", "run1"):
        told = call("status").stdout
    assert "running    site by" in told and "run run1" in told


def test_a_site_that_another_verb_holds_ends_with_4(store: Store) -> None:
    with machine_lock.acquire(site(store.folder).site_dir, "site", "run1", pid=os.getppid()):
        done = call("run")
    assert done.exit_code == 4 and "The site is being changed: site by" in done.stderr and store.names() == []


def test_approve(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    plays(monkeypatch, recorded("role") + ended(*WORKERS), ended(*WORKERS))
    call("run")
    (name,) = store.names()
    given = call("approve", name)
    assert given.exit_code == 0 and f"may repair the 1 items of {name}" in given.stdout
    (kept,) = repair_plan.load(store.folder)
    assert (kept.report, kept.commit[:7], kept.used) == (name, "3f2a91c", 0.0)
    call("run")
    clean = next(each for each in store.names() if each != name)
    for report, told in ((clean, "nothing that a converge would repair"), ("nothing", "There is no report nothing")):
        refused = call("approve", report)
        assert refused.exit_code == 2 and told in refused.stderr


def test_help_says_what_changes_a_site() -> None:
    told = " ".join(CliRunner().invoke(main, ["--help"]).stdout.split())
    assert "`reprovision run --mode converge` changes a site, with the same playbooks" in told
