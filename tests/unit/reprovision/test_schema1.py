"""Reports, ages and approvals of schema 1 in a state folder that a newer checkout reads."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.reprovision.sites import NOW
from trainyard.drift import repair_plan, site_access
from trainyard.drift.converge import converges
from trainyard.drift.find import CONNECTION, REFUSAL
from trainyard.drift.items import Item, from_json, key_of
from trainyard.drift.report_store import Store, aged
from trainyard.drift.subjects import HIDDEN, bare_subject, hidden_subject

NAME = "20270115T080000Z-0a1b"
COMMIT = "3f2a91c"


def old(host: str, role: str, task: str, module: str, subject: str, **more: Any) -> dict[str, Any]:
    """An item as schema 1 has it."""
    text = json.dumps([host, role, task, module, subject])
    return {
        "key": hashlib.sha256(text.encode()).hexdigest()[:16], "host": host, "role": role, "task": task,
        "module": module, "subject": subject, "before": "", "after": "", "class": "person", "reason": "",
        "first_seen": NOW, "last_seen": NOW, "runs": 1, "done": "", "via": "", **more,
    }  # fmt: skip


SYSCTL = old(
    "w1", "base", "kernel | Set", "kernel_settings", "sysctl a", before="0", after="1", **{"class": "repairable"}
)
SECRET = old("w1", "mirror", "push | Write", "copy", "Write", before=HIDDEN, after=HIDDEN)
SECRET_TOO = old("w1", "mirror", "pull | Write it", "copy", "Write it", before=HIDDEN, after=HIDDEN)
REFUSED = old("w2", "kubernetes", "preflight | Refuse", "assert", "Refuse", reason="too small")
BARE = old("controller", "lab", "Make the lab", "lab", "Make the lab", after="Create it")
GONE = old("w3", "", "Reach the host", "", CONNECTION, reason="no route")
FETCHED = old(
    "controller", "control_plane", "kubeconfig | Keep the admin kubeconfig", "copy", "Keep the admin kubeconfig",
    before="missing", after=site_access.PRIVATE,
)  # fmt: skip
ITEMS = [SYSCTL, SECRET, SECRET_TOO, REFUSED, BARE, GONE, FETCHED]
SUBJECTS = [
    "sysctl a", hidden_subject("copy"), hidden_subject("copy"), REFUSAL, bare_subject("lab"), CONNECTION,
    hidden_subject("copy"),
]  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A state folder as the schedule of an older checkout has left it."""
    store = Store(tmp_path / "state")
    report = {
        "schema": 1, "id": NAME, "mode": "converge", "only": [], "began": NOW, "ended": NOW, "seconds": 1.0,
        "state": "complete", "exit_status": 1, "headline": "", "items": ITEMS, "repaired": [SYSCTL["key"], "other"],
        "revision": {"commit": COMMIT},
    }  # fmt: skip
    store.write_json(f"runs/{NAME}/report.json", report)
    ages = {each["key"]: {"host": each["host"], "first_seen": NOW - 50 * number, "last_seen": NOW, "runs": 3}
            for number, each in enumerate(ITEMS)}  # fmt: skip
    store.write_json("history.json", {"schema": 1, "items": {**ages, "of no report": {}}})
    return store


def test_a_report_is_read_with_the_keys_of_today(store: Store) -> None:
    report = store.report(NAME)
    assert report and report["schema"] == 2
    assert [each["subject"] for each in report["items"]] == SUBJECTS
    assert [from_json(each).key for each in report["items"]] == [each["key"] for each in report["items"]]
    assert report["items"][-1]["key"] == site_access.ITEM.key
    assert converges(store) == [[key_of("w1", "base", "kernel_settings", "sysctl a"), "other"]]


def test_ages_survive_whatever_tasks_are_called_now(store: Store) -> None:
    now = [Item("w1", "base", "Any name", "kernel_settings", "sysctl a"),
           Item("w1", "mirror", "Any name", "copy", hidden_subject("copy")),
           Item("w2", "kubernetes", "Any name", "assert", REFUSAL)]  # fmt: skip
    found, history = aged(now, store.history(), NOW + 9)
    # Of the two secrets that are one by now, the older one counts.
    assert [(each.first_seen, each.runs) for each in found] == [(NOW, 4), (NOW - 100, 4), (NOW - 150, 4)]
    store.keep_history(history)
    assert store.history() == history


def test_an_approval_survives(store: Store) -> None:
    keys = sorted(each["key"] for each in ITEMS)
    folder = store.folder / repair_plan.FOLDER
    folder.mkdir()
    kept = {"report": NAME, "keys": keys, "commit": COMMIT, "approved": NOW, "by": "alice", "used": 0.0}
    (folder / f"{NAME}.json").write_text(json.dumps(kept))
    (found,) = repair_plan.load(store.folder)
    today = {each["key"] for each in (store.report(NAME) or {})["items"]}
    assert found.why_not(today, COMMIT, NOW + 60, 12) == "" and found.by == "alice"
    repair_plan.use(store.folder, found, NOW + 61)
    (used,) = repair_plan.load(store.folder)
    assert used.used == NOW + 61 and used.keys == found.keys


@pytest.mark.parametrize("report", ["20270115T080000Z-ffff", "../../etc"])
def test_an_approval_whose_report_is_gone_counts_for_nothing(store: Store, report: str) -> None:
    folder = store.folder / repair_plan.FOLDER
    folder.mkdir()
    kept = {"report": report, "keys": ["a"], "commit": COMMIT, "approved": NOW, "by": "alice", "used": 0.0}
    (folder / f"{NAME}.json").write_text(json.dumps(kept))
    (found,) = repair_plan.load(store.folder)
    assert "cannot be read" in found.why_not(["a"], COMMIT, NOW, 12)


@pytest.mark.parametrize("age", [None, 5, [], {}, {"first_seen": "x"}])
def test_ages_of_any_form_end_nothing(store: Store, age: Any) -> None:
    store.write_json("history.json", {"schema": 1, "items": dict.fromkeys((each["key"] for each in ITEMS), age)})
    assert store.history() == {}


@pytest.mark.parametrize("report", ["[]", "5", "null", '{"items": 5}'])
def test_an_approval_of_a_report_of_any_form_counts_for_nothing(store: Store, report: str) -> None:
    (store.runs / NAME / "report.json").write_text(report)
    folder = store.folder / repair_plan.FOLDER
    folder.mkdir()
    kept = {"report": NAME, "keys": ["a"], "commit": COMMIT, "approved": NOW, "by": "alice", "used": 0.0}
    (folder / f"{NAME}.json").write_text(json.dumps(kept))
    (found,) = repair_plan.load(store.folder)
    assert found.fault


@pytest.mark.parametrize("items", [None, 5, [None], [{"key": "a"}], [{**SYSCTL, "subject": 5}]])
def test_a_report_of_any_form_is_read(store: Store, items: Any) -> None:
    report = store.read_json(f"runs/{NAME}/report.json")
    store.write_json(f"runs/{NAME}/report.json", {**report, "items": items})
    assert (store.report(NAME) or {})["schema"] == 2 and store.history() == {}
