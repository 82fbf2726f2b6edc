"""What a person calls on the host of the schedule: as whom it runs, and that it needs no password of a vault."""

from __future__ import annotations

import getpass
import json
import os
import pwd
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from jinja2 import Environment

from tests.unit.reprovision.reports import report
from tests.unit.reprovision.test_scheduled import WRITTEN
from trainyard.drift.report_store import Store
from trainyard.schedule import scheduled

ROOT = Path(__file__).resolve().parents[3]
SCHEDULE = "/etc/trainyard/reprovision/schedule.json"
TOLD = """import os
def main(words): print("unit", os.getuid(), os.getgid(), len(os.getgroups()) < 3, *words)
def by_hand(path, words): print("hand", os.environ["SUDO_USER"], path, *words)
"""


def started(folder: Path, user: str, *words: str) -> subprocess.CompletedProcess[str]:
    """The file that the role writes, called with some words."""
    environment = Environment(trim_blocks=True)
    environment.filters["to_json"] = json.dumps
    text = (
        (ROOT / "roles/reprovision/templates/start.py.j2")
        .read_text(encoding="utf-8")
        .replace(SCHEDULE, f"{folder}/schedule.json")
    )
    start = folder / "start"
    start.write_text(
        environment.from_string(text).render(reprovision_dir=str(folder), reprovision_user=user), encoding="utf-8"
    )
    env = {**os.environ, "SUDO_USER": "alice"}
    argv = [sys.executable, "-I", str(start), *words]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60, env=env, cwd=folder)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody may read, with a program that says how it is called."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        package = folder / "git" / "installed" / "src" / "trainyard"
        (package / "schedule").mkdir(parents=True)
        for each in (package, package / "schedule"):
            (each / "__init__.py").touch()
        (package / "schedule" / "scheduled.py").write_text(TOLD, encoding="utf-8")
        yield folder


def test_nothing_of_the_user_is_carried_out_by_anybody_else(place: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    done = started(place, "nobody", "/x/schedule.json", "--clean")
    if os.getuid() == 0:
        assert done.stdout == f"unit {nobody.pw_uid} {nobody.pw_gid} True /x/schedule.json --clean\n", done.stderr
    else:
        assert done.returncode == 2 and "The schedule is nobody's and root's. Call" in done.stderr


def test_a_person_need_not_know_where_the_schedule_lies(place: Path) -> None:
    done = started(place, getpass.getuser(), "show", "--list")
    assert done.stdout == f"hand alice {place}/schedule.json show --list\n", done.stderr
    assert "unit" in started(place, getpass.getuser(), "/x/schedule.json").stdout


@pytest.mark.parametrize("words", [[], ["run"], ["--mode", "converge"]])
def test_a_run_is_the_units(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert scheduled.by_hand("/nonexistent", words) == scheduled.CANNOT_TELL
    assert "This command accepts approve REPORT, show [REPORT] or status. Start a run" in capsys.readouterr().err


def test_what_it_becomes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "git" / "installed").mkdir(parents=True)
    path = tmp_path / "schedule.json"
    path.write_text(json.dumps({**WRITTEN, "folder": str(tmp_path)}), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUDO_USER", "alice")
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", "/root/mine")
    become: list[tuple[str, list[str], Mapping[str, str]]] = []
    scheduled.by_hand(str(path), ["approve", "x"], become=lambda *given: become.append(given))
    ((program, argv, environ),) = become
    installed = tmp_path / "git" / "installed"
    inventories = ["-i", f"{installed}/inventories/a", "-i", "/srv/x/controller"]
    assert (program, argv[5:]) == (argv[0], [*inventories, "reprovision", "approve", "x"])
    assert environ["PYTHONPATH"] == f"{installed}/src:{installed}/workloads"
    assert environ["SUDO_USER"] == "alice" and "ANSIBLE_VAULT_PASSWORD_FILE" not in environ
    assert (environ["HOME"], Path.cwd()) == (str(tmp_path / "home"), installed)


@pytest.mark.slow
def test_a_report_is_approved_without_the_password_of_the_vault(tmp_path: Path) -> None:
    """The installed program itself, with an inventory of which a file and an address are encrypted."""
    python = tmp_path / "environment" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    (tmp_path / "home").mkdir()
    (tmp_path / "git").mkdir()
    (tmp_path / "git" / "installed").symlink_to(ROOT)
    password = tmp_path / "password"
    password.write_text("of the vault", encoding="utf-8")
    vault = [str(Path(sys.executable).with_name("ansible-vault"))]

    def encrypted(*words: str) -> str:
        argv = [*vault, words[0], f"--vault-password-file={password}", *words[1:]]
        return subprocess.run(argv, cwd=ROOT, check=True, text=True, capture_output=True).stdout

    folder = tmp_path / "inventory" / "group_vars" / "all"
    folder.mkdir(parents=True)
    (folder.parents[1] / "hosts.yml").write_text("all: {children: {cluster: {hosts: {w1: {}}}}}\n", encoding="utf-8")
    hook = encrypted("encrypt_string", "--name=hook", "https://chat.example.com/x")
    (folder / "site.yml").write_text(
        f"{hook}\nsupply: vendors\nsite_dir: {tmp_path}/site\ncontrol_plane_kubeconfig: x\n"
        "reprovision_hooks: [{name: chat, webhook: '{{ hook }}'}]\n",
        encoding="utf-8",
    )
    (folder / "vault.yml").write_text("many: secrets\n", encoding="utf-8")
    encrypted("encrypt", str(folder / "vault.yml"))
    written = {
        **WRITTEN,
        "folder": str(tmp_path),
        "inventory": str(tmp_path / "inventory"),
        "overlay": str(tmp_path / "inventory"),
    }
    (tmp_path / "schedule.json").write_text(json.dumps(written), encoding="utf-8")
    password.unlink()
    store = Store(tmp_path / "site" / "reprovision")
    name = store.begin(0.0, report())
    done = started(tmp_path, getpass.getuser(), "approve", name)
    assert f"items of {name}, and nothing else." in done.stdout, done.stderr
    kept = json.loads((store.folder / "approvals" / f"{name}.json").read_text(encoding="utf-8"))
    assert "alice" in kept["by"]
    assert "drift " in started(tmp_path, getpass.getuser(), "status").stdout
