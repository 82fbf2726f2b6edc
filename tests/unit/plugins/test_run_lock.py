"""`_lock.yml` in real runs of ansible-playbook: who is refused, who is not, and what is left at the end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from plugins.callback.run_lock import CallbackModule
from trainyard.site_lock import machine_lock
from trainyard.site_lock.holder import here

# Each start of Ansible takes seconds.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
PLAY = f"""
- ansible.builtin.import_playbook: {ROOT}/playbooks/_lock.yml
- ansible.builtin.import_playbook: {ROOT}/playbooks/_lock.yml
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.command: cat {{{{ lock }}}}
      changed_when: false
      check_mode: false
      register: held
    - ansible.builtin.debug:
        var: held.stdout
"""
INVENTORY = "all: {vars: {ansible_connection: local}, hosts: {w1: , w2: }}"


def site(folder: Path) -> str:
    """What tells the site from others: its inventory, because it names no folder."""
    return str(folder / "hosts.yml")


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[Path]:
    """The file of the lock of the site that `play` changes."""
    path = machine_lock.path_of(site(tmp_path))
    yield path
    path.unlink(missing_ok=True)


def play(folder: Path, lock: Path, *arguments: str, callbacks: bool = True, run_id: str = "") -> tuple[int, str]:
    (folder / "play.yml").write_text(PLAY, encoding="utf-8")
    (folder / "hosts.yml").write_text(INVENTORY, encoding="utf-8")
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
    environment |= {
        "TRAINYARD_RUN_ID": run_id,
        "ANSIBLE_CALLBACKS_ENABLED": "run_lock" if callbacks else "times_and_receipt",
    }
    command = [str(Path(sys.executable).with_name("ansible-playbook")), str(folder / "play.yml")]
    command += ["-i", str(folder / "hosts.yml"), "-e", f"lock={lock}", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


@pytest.mark.parametrize("arguments", [("--limit", "w2,localhost"), ("--check",)])
def test_a_run_holds_the_lock_and_leaves_none(tmp_path: Path, lock: Path, arguments: tuple[str, ...]) -> None:
    status, output = play(tmp_path, lock, *arguments)
    assert status == 0, output
    assert '"verb": "play"' in output.replace("\\", ""), output
    assert "changed=0" in output
    assert lock.read_text(encoding="utf-8") == ""


def test_without_the_callback_the_next_run_waits_for_the_last_words(tmp_path: Path, lock: Path) -> None:
    for _ in range(2):
        status, output = play(tmp_path, lock, callbacks=False)
        assert status == 0, output


@pytest.mark.parametrize("arguments", [(), ("--check", "--limit", "w2")])
def test_a_second_run_is_refused_and_told_by_whom(tmp_path: Path, lock: Path, arguments: tuple[str, ...]) -> None:
    with machine_lock.acquire(site(tmp_path), "reprovision", "run-7") as other:
        status, output = play(tmp_path, lock, *arguments)
        assert status == 2, output
        assert f"Nothing was touched. The site is being changed: {other.holder}" in output
        assert "held.stdout" not in output
        assert machine_lock.holder(site(tmp_path)) == other.holder


def test_a_run_does_not_refuse_its_own_parent(tmp_path: Path, lock: Path) -> None:
    with machine_lock.acquire(site(tmp_path), "reprovision", "run-7") as other:
        status, output = play(tmp_path, lock, run_id="run-7")
        assert status == 0, output
        assert machine_lock.holder(site(tmp_path)) == other.holder
        assert play(tmp_path, lock, run_id="run-8")[0] == 2
    # The parent is gone: its child is a run like any other.
    status, output = play(tmp_path, lock, run_id="run-7")
    assert status == 0, output


def test_a_missing_cluster_is_said(tmp_path: Path, lock: Path) -> None:
    status, output = play(tmp_path, lock, "-e", f"control_plane_kubeconfig={tmp_path}/none")
    assert status == 0, output
    assert "Only the lock of this machine counts, because there is no lease: There is no kubeconfig" in output


class Shown:
    """Stands for Ansible's display."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warning(self, text: str) -> None:
        self.warnings.append(text)


def test_what_was_lost_is_said_once(tmp_path: Path) -> None:
    path, shown = tmp_path / "lock", Shown()
    me = here("site", "run-1", 0.0)
    callback = CallbackModule()
    callback._display = shown
    callback.v2_playbook_on_task_start(None, False)
    taken = {"keeper": me.pid, "keeper_started": me.started, "lock": str(path)}
    callback.v2_runner_on_ok(SimpleNamespace(task=SimpleNamespace(action="run_lock"), result=taken))
    steps = (
        (me, 0),
        (replace(me, lost="The lease was deleted."), 1),
        (replace(me, lost="The lease was deleted."), 1),
        (me, 1),
        (replace(me, lost="The lease was taken over."), 2),
    )
    for holder, count in steps:
        path.write_text(holder.as_json(), encoding="utf-8")
        callback.v2_playbook_on_task_start(None, False)
        assert len(shown.warnings) == count, holder
    assert shown.warnings[1].endswith("The lease was taken over.")
    taken["keeper_started"] = me.started + 1
    callback.v2_runner_on_ok(SimpleNamespace(task=SimpleNamespace(action="run_lock"), result=taken))
    callback.v2_playbook_on_task_start(None, False)
    assert shown.warnings[2].endswith("The process that keeps the locks of this run has ended.")
