"""A kubeconfig that is gone, or that others may read: repaired before a converge asks for its lease."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.reprovision.sites import Stopped, site
from tests.unit.reprovision.worlds import World, cluster, failure, leased
from trainyard.core.errors import TrainyardError
from trainyard.drift import converge as repair
from trainyard.drift.items import class_of
from trainyard.drift.masking import Masker
from trainyard.drift.playbook_runner import Played
from trainyard.drift.report import Revision
from trainyard.drift.report_store import Store
from trainyard.drift.site_access import ITEM, PLAYBOOK, restore_kubeconfig, wrong
from trainyard.drift.subjects import changes
from trainyard.schedule import notify
from trainyard.schedule import session as perform
from trainyard.site.inventory import ROLES
from trainyard.site_lock import machine_lock


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(machine_lock, "folder", lambda: tmp_path / "locks")
    return tmp_path / "state"


class Fetching(World):
    """A site whose control plane gives its kubeconfig back; `lost` if it does not."""

    def __init__(self, path: str, drift: dict[str, list[str]] | None = None, lost: bool = False) -> None:
        super().__init__(drift or {})
        self.path, self.lost = Path(path), lost

    def __call__(self, playbook: str, **options: Any) -> Played:
        if playbook != PLAYBOOK:
            return super().__call__(playbook, **options)
        self.calls.append("fetch")
        if self.lost:
            return Played([failure("cp1")], 2, "", {"output.txt.gz": b"fetched "})
        self.path.touch()
        self.path.chmod(0o600)
        return Played([], 0, "", {"output.txt.gz": b"fetched "})


def test_what_is_wrong_with_it(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    assert wrong(str(path)) == "missing"
    path.touch(mode=0o600)
    assert wrong(str(path)) == ""
    path.chmod(0o644)
    assert wrong(str(path)) == "mode 0644"


def test_a_report_knows_the_item_by_the_same_key() -> None:
    """The role's own task finds it in a report, with its values hidden."""
    tasks = yaml.safe_load((ROLES / "control_plane" / "tasks" / "kubeconfig.yml").read_text(encoding="utf-8"))
    (task,) = [each for each in tasks if f"ansible.builtin.{ITEM.module}" in each]
    hidden = {"result": {}, "task": task["name"], "module": ITEM.module, "hidden": "no_log" in task}
    assert [each.subject for each in changes(hidden)] == [ITEM.subject]
    assert class_of(ITEM.role, ITEM.module, ITEM.subject, "missing") == ("repairable", "")


@pytest.mark.parametrize(
    ("spoil", "drift", "told", "status", "calls"),
    [
        ("missing", {}, "all drift repaired", 0, ["fetch", "check all"]),
        ("mode 0644", {}, "all drift repaired", 0, ["fetch", "check all"]),
        ("", {}, "clean", 0, ["check all"]),
        ("missing", {"worker1": ["a"]}, "all drift repaired", 0,
         ["fetch", "check all", "run worker1 hosts alone", "check all"]),
    ],
)  # fmt: skip
def test_a_converge_repairs_it_first(
    folder: Path, monkeypatch: pytest.MonkeyPatch, spoil: str, drift: Any, told: str, status: int, calls: list[str]
) -> None:
    there, store = site(folder), Store(folder)
    path = Path(there.kubeconfig)
    if spoil == "missing":
        path.unlink()
    elif spoil:
        path.chmod(0o644)
    monkeypatch.setattr(perform, "locked", lambda *_, **__: leased())
    monkeypatch.setattr(notify, "follow", lambda session: None)
    converge = repair.converge
    monkeypatch.setitem(perform.MODES, "converge", lambda session: converge(session, lambda _: cluster()))
    world = Fetching(str(path), drift)
    session = perform.perform(
        there, store, "converge", Revision("3f", "", True), clock=Stopped(), play=world, young=bool
    )
    report = session.report
    assert (report["headline"], report["exit_status"], world.calls) == (told, status, calls)
    first = [(each["before"], each["done"]) for each in report["items"] if each["key"] == ITEM.key]
    assert first == ([(spoil, "repaired, proven")] if spoil else []) and (ITEM.key in report["repaired"]) == bool(spoil)
    assert wrong(there.kubeconfig) == ""


def test_one_that_is_not_to_be_had_is_said(folder: Path) -> None:
    there = site(folder)
    Path(there.kubeconfig).unlink()

    def refuse(*_: Any, **__: Any) -> Played:
        raise TrainyardError("ansible-runner is missing.")

    for play, why in ((Fetching(there.kubeconfig, lost=True), "the disk is full"), (refuse, "ansible-runner is")):
        restored = restore_kubeconfig(there, "run", play=play, masker=Masker())
        assert (
            not restored.items and "the kubeconfig was not fetched: " in restored.notes[0] and why in restored.notes[0]
        )


def test_what_somebody_else_keeps_taking_away_is_for_a_person(folder: Path) -> None:
    there = site(folder)
    Path(there.kubeconfig).unlink()
    restored = restore_kubeconfig(there, "run", [[ITEM.key]] * 3, play=Fetching(there.kubeconfig), masker=Masker())
    assert not restored.items and "3 times in a row" in restored.notes[0]
    assert restore_kubeconfig(there, "run", [[ITEM.key]] * 2, play=Fetching(there.kubeconfig), masker=Masker()).items
