"""One run from its beginning to what lies on the disk, with recorded events in place of a site."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.reprovision.sites import NOW, Playbook, Stopped, ended, recorded, shape, site
from trainyard.core.errors import TrainyardError
from trainyard.drift.report import begun
from trainyard.drift.report_run import CREDENTIALS, Session, report
from trainyard.drift.report_store import Store

WORKERS = ("worker1", "worker2", "worker3")
CANARY = "canary-4711"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "reprovision")


def looked(store: Store, *turns: Any, clock: Stopped | None = None, **options: Any) -> tuple[Session, int]:
    settings = options.pop("settings", {})
    secrets, stopped = options.pop("secrets", frozenset()), options.pop("stopped", "")
    play = Playbook(*turns, stopped=stopped)
    session = Session(site(store.folder, secrets, **settings), store, clock=clock or Stopped(), play=play, **options)
    return session, report(session)


def test_a_clean_run(store: Store) -> None:
    session, status = looked(store, ended(*WORKERS))
    assert status == 0 and session.report["headline"] == "clean"
    assert store.report(session.name) == session.report
    files = {each.name for each in (store.runs / session.name).iterdir()}
    assert files == {"report.json", "report.md", "events.jsonl.gz"}


def test_a_run_is_a_check_of_the_whole_site(store: Store) -> None:
    session, _ = looked(store, ended(*WORKERS))
    (call,) = session._play.calls  # type: ignore[attr-defined]
    assert call["extra"] == {}
    assert (call["playbook"], call["mode"], call["site_hosts"]) == ("site.yml", "check", ())
    assert (call["run_id"], call["timeout"]) == (session.name, 3600)


def test_drift_keeps_its_age_while_its_host_cannot_be_looked_at(store: Store) -> None:
    clock = Stopped()
    _, status = looked(store, recorded("role") + ended(*WORKERS), clock=clock)
    assert status == 1
    clock.now += 100
    gone = ended("worker2", "worker3")
    _, status = looked(store, gone, clock=clock)
    assert status == 2, "worker1 was not looked at"
    clock.now += 100
    session, _ = looked(store, recorded("role") + ended(*WORKERS), clock=clock)
    (item,) = session.report["items"]
    assert (item["first_seen"], item["last_seen"], item["runs"]) == (NOW, NOW + 200, 2)
    _, status = looked(store, ended(*WORKERS), clock=clock)
    assert status == 0 and store.history() == {}


def test_a_host_that_is_refused_or_not_reached_does_not_end_the_report(store: Store) -> None:
    session, status = looked(store, recorded("hosts"))
    assert status == 2 and "not reached: worker3" in session.report["headline"]
    states = {name: host["state"] for name, host in session.report["hosts"].items()}
    assert states == {"worker1": "drift", "worker2": "failed", "worker3": "unreachable"}
    assert ("worker2", "person", "refusal") in shape(session.report)


def test_some_hosts_alone(store: Store) -> None:
    session, status = looked(store, ended("worker2"), hosts=["worker2"])
    assert status == 0 and list(session.report["hosts"]) == ["worker2"]
    assert session._play.calls[0]["site_hosts"] == ("worker2",)  # type: ignore[attr-defined]


def test_a_misspelt_host_is_refused_before_anything_is_written(store: Store) -> None:
    with pytest.raises(TrainyardError, match=r"no host worker9.*It has worker1, worker2, worker3"):
        looked(store, hosts=["worker9"])
    assert store.names() == []


def test_a_site_without_hosts_is_refused(store: Store) -> None:
    """Ansible only warns where it cannot read a file of hosts."""
    empty = replace(site(store.folder), hosts=())
    with pytest.raises(TrainyardError, match="names no host"):
        Session(empty, store, clock=Stopped(), play=Playbook())
    assert store.names() == []


@pytest.mark.parametrize(
    ("turn", "stopped", "told"),
    [
        (TrainyardError("site.yml cannot be run: no program."), "", "unknown: site.yml cannot be run: no program."),
        (ended(*WORKERS)[:0], "it was stopped after 3600 s", "unknown: it was stopped after 3600 s"),
        ([], "", "unknown: the run did not finish"),
    ],
)
def test_a_run_that_cannot_be_carried_out_is_closed_and_says_why(
    store: Store, turn: Any, stopped: str, told: str
) -> None:
    session, status = looked(store, turn, stopped=stopped)
    assert status == 2 and session.report["headline"].startswith(told)
    found = store.report(session.name)
    assert found is not None and found["state"] == "complete"


def test_a_run_that_was_killed_is_closed_by_the_next(store: Store) -> None:
    killed = store.begin(NOW - 9, begun("converge", "converge", NOW - 9))
    session, status = looked(store, ended(*WORKERS))
    assert status == 0 and session.report["notes"] == [f"the run {killed} was interrupted"]
    found = store.report(killed)
    assert found is not None and found["state"] == "interrupted"


def test_old_runs_are_pruned(store: Store) -> None:
    clock = Stopped()
    for _ in range(4):
        looked(store, ended(*WORKERS), clock=clock, settings={"keep_runs": 2})
        clock.now += 60
    kept = [name for name in store.names() if (store.runs / name / "events.jsonl.gz").exists()]
    assert (len(store.names()), kept) == (4, store.names()[:2])


def test_secrets_reach_no_file(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a vaulted variable, of a credential of the service, and in the message of an error."""
    (tmp_path / "vault").write_text("password-of-the-vault\n")
    monkeypatch.setenv(CREDENTIALS, str(tmp_path))
    events = recorded("role") + ended(*WORKERS)
    changed = next(each for each in events if each["event"] == "runner_on_ok" and each["changed"])
    changed["result"]["diff"]["before"] = {"kernel.ostype": CANARY, f"{CANARY}.key": "1"}
    failed = {**changed, "event": "runner_on_failed", "result": {"msg": f"{CANARY} and password-of-the-vault"}}
    events[-1]["failures"] = {"worker1": 1}
    error = TrainyardError(f"It said {CANARY}.")
    for turn in ([*events[:-1], failed, events[-1]], error):
        session, _ = looked(store, turn, secrets=frozenset({CANARY}))
        assert "********" in str(session.report)
    for path in [each for each in store.folder.rglob("*") if each.is_file()]:
        for secret in (CANARY, "password-of-the-vault"):
            data = path.read_bytes()
            assert secret.encode() not in data
            if path.suffix == ".gz":
                assert secret.encode() not in gzip.decompress(data)
