"""ansible-runner as it is used: what it is told otherwise, and that nothing of it is left."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from trainyard.core.waiter import wait_until
from trainyard.drift import playbook_runner, stopping
from trainyard.drift.masking import Masker
from trainyard.drift.playbook_runner import CHECK, Played, play

PLAYBOOK = """
- name: Say how it is run
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Say
      ansible.builtin.add_host:
        name: >-
          {{ lookup('ansible.builtin.config', 'HOST_KEY_CHECKING') }}
          {{ lookup('ansible.builtin.config', 'CACHE_PLUGIN') }}
          {{ lookup('ansible.builtin.config', 'DEFAULT_CALLBACK_PLUGIN_PATH')[0] }}
          {{ lookup('ansible.builtin.config', 'DEFAULT_NO_TARGET_SYSLOG') }}
          {{ lookup('ansible.builtin.env', 'TRAINYARD_RUN_ID') }} {{ ansible_check_mode }} {{ site_hosts }}
          {{ lookup('ansible.builtin.pipe', 'tr "\\0" " " < /proc/$PPID/cmdline') is search('w1.{1,6}w2') }}
      register: said

    - name: Refuse
      ansible.builtin.fail:
        msg: "{{ said.add_host.host_name }} {{ secret_value }}"
      vars:
        secret_value: canary-4711
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def played(folder: Path, text: str, **options: Any) -> Played:
    (folder / "hosts.yml").write_text("all: {hosts: {localhost: {ansible_connection: local}}}\n")
    (folder / "play.yml").write_text(text)
    return play(
        folder / "play.yml", inventory=[str(folder / "hosts.yml")], mode=CHECK, masker=Masker(["canary-4711"]),
        **{"timeout": 120, **options},
    )  # fmt: skip


@pytest.mark.slow
def test_it_checks_host_keys_and_leaves_nothing_behind(tmp_path: Path, temporary: Path) -> None:
    before = dict(os.environ)
    done = played(tmp_path, PLAYBOOK, run_id="20270115T080000Z-abcd", site_hosts=["w1", "w2"])
    (message,) = [each["result"]["msg"] for each in done.events if each["event"] == "runner_on_failed"]
    root = Path(__file__).resolve().parents[3]
    assert message == f"True memory {root}/plugins/callback True 20270115T080000Z-abcd True w1,w2 False ********"
    assert (done.rc, done.stopped) == (2, "")
    assert [each for each in temporary.rglob("*") if each.is_file()] == []
    assert dict(os.environ) == before
    for name, data in done.kept.items():
        text = gzip.decompress(data).decode()
        assert "canary-4711" not in text and "********" in text, name


def test_what_a_killed_run_has_left_goes_at_the_next_start(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed = temporary / f"{playbook_runner.PREFIX}killed"
    killed.mkdir()
    (killed / "variables.json").write_text("{}")
    with playbook_runner._folder() as living:
        assert killed.is_dir(), "it may have been made this very moment"
        monkeypatch.setattr(playbook_runner, "YOUNG_SECONDS", -1.0)
        with playbook_runner._folder() as other:
            assert sorted(temporary.iterdir()) == sorted(map(Path, (living, other)))
    assert list(temporary.iterdir()) == []


@pytest.mark.slow
def test_a_playbook_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    done = played(tmp_path, "- hosts: [")
    assert done.events == [] and "did nothing" in done.stopped


@pytest.mark.slow
def test_it_is_told_to_stop_at_its_limit(tmp_path: Path) -> None:
    task = "{ansible.builtin.wait_for: {path: /never}, check_mode: false}"
    text = f"- {{hosts: localhost, gather_facts: false, tasks: [{task}]}}"
    done = played(tmp_path, text, timeout=5)
    assert "stopped after 5 s" in done.stopped and done.rc == 254


@pytest.mark.slow
def test_it_is_told_to_stop_by_a_signal(tmp_path: Path) -> None:
    task = "{ansible.builtin.wait_for: {path: /never}, check_mode: false}"
    text = f"- {{hosts: localhost, gather_facts: false, tasks: [{task}]}}"
    with stopping.listening():
        teller = Timer(4, os.kill, (os.getpid(), signal.SIGTERM))
        teller.start()
        done = played(tmp_path, text)
    assert done.stopped == "it received a stop signal" and done.rc == 254


@pytest.mark.slow
def test_it_ends_with_the_program_that_holds_the_locks(tmp_path: Path) -> None:
    """A killed program releases its locks, and another run may start at once."""
    mark = tmp_path / "begun"
    task = f"{{ansible.builtin.shell: 'echo $PPID > {mark}; sleep 300', check_mode: false}}"
    (tmp_path / "hosts.yml").write_text("all: {hosts: {localhost: {ansible_connection: local}}}\n")
    (tmp_path / "play.yml").write_text(f"- {{hosts: localhost, gather_facts: false, tasks: [{task}]}}")
    program = (
        "import sys\nfrom trainyard.drift.masking import Masker\n"
        "from trainyard.drift.playbook_runner import CHECK, play\n"
        "play(sys.argv[1], inventory=[sys.argv[2]], mode=CHECK, masker=Masker([]), timeout=120)\n"
    )
    arguments = [str(tmp_path / "play.yml"), str(tmp_path / "hosts.yml")]
    process = subprocess.Popen([sys.executable, "-c", program, *arguments])
    wait_until(mark.exists, bool, what="the task", timeout=60)
    started = children(process.pid)
    assert started, "no ansible-playbook"
    process.kill()
    process.wait()
    wait_until(lambda: any(map(alive, started)), lambda found: not found, what="its end", timeout=20)


def children(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(each) for each in found.stdout.split()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
