"""What the timer starts: which program, in which mode, with what in its environment."""

from __future__ import annotations

import getpass
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from jinja2 import Environment

from tests.unit.interpreters import without_checkout
from trainyard.core.waiter import Clock
from trainyard.drift.report import VARIABLE, Revision
from trainyard.drift.stopping import Deadline
from trainyard.project import ROOT
from trainyard.schedule import scheduled

GOOD = Revision("a" * 40, "main", True)
OLD = Revision("b" * 40, "main", None, "No signature.", may_converge=False)
MISSED = "The scheduled time was missed while the machine was off: this run changes nothing."

WRITTEN = {
    "folder": "/srv/x", "inventory": "inventories/a", "overlay": "/srv/x/controller", "mode": "converge",
    "delay": "15min", "repository": "", "revision": "main", "signers": "", "requirements": "",
}  # fmt: skip


@pytest.fixture
def schedule(tmp_path: Path) -> scheduled.Schedule:
    path = tmp_path / "schedule.json"
    path.write_text(json.dumps(WRITTEN), encoding="utf-8")
    return scheduled.Schedule.read(path)


@pytest.mark.parametrize(
    ("revision", "options", "missed", "words", "note"),
    [
        (GOOD, [], False, ["--mode", "converge"], ""),
        (GOOD, [], True, ["--mode", "report"], MISSED),
        (OLD, [], False, ["--mode", "report"], "No signature."),
        (OLD, [], True, ["--mode", "report"], f"No signature. {MISSED}"),
        (OLD, ["--mode=converge", "--hosts", "a"], False, ["--mode=report", "--hosts", "a"], "No signature."),
        (GOOD, ["--mode", "report"], True, ["--mode", "report"], ""),
    ],
)
def test_program(
    schedule: scheduled.Schedule, revision: Revision, options: list[str], missed: bool, words: list[str], note: str
) -> None:
    argv, environ = scheduled.command(schedule, revision, Path("/w/1"), options, missed=missed)
    assert argv[:4] == ["/srv/x/environment/bin/python", "-s", "-P", "-c"]
    assert argv[5:] == ["-i", "/w/1/inventories/a", "-i", "/srv/x/controller", "reprovision", "run", *words]
    assert environ["PATH"].startswith("/srv/x/environment/bin:") and environ["PYTHONPATH"] == "/w/1/src:/w/1/workloads"
    given = json.loads(environ[VARIABLE])
    assert (given["commit"], given["note"], given["may_converge"]) == (revision.commit, note, revision.may_converge)


class Later(Clock):
    def monotonic(self) -> float:
        return 1000.0


@pytest.mark.parametrize(
    ("delay", "started", "young"),
    [
        ("15min", "1000000", False),
        ("15min", "41000000", True),
        ("15minutes", "41000000", True),
        ("0", "939000000", False),
        ("0", "941000000", True),
        ("1h", "0", False),
        ("1h", "", False),
    ],
)
def test_a_timer_that_was_just_started_makes_up_for_what_was_missed(delay: str, started: str, young: bool) -> None:
    assert scheduled.timer_is_young(delay, Later(), lambda: f"{started}\n") is young


@pytest.mark.parametrize("text", ["", "{}", "[", None])
def test_a_broken_schedule_is_an_error_and_not_a_crash(
    tmp_path: Path, text: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "schedule.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    assert scheduled.main([str(path)]) == scheduled.CANNOT_TELL
    assert "cannot be read" in capsys.readouterr().err


def test_a_second_start_is_refused_before_it_does_anything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first one is killed; then the lock is free, whatever it has become."""
    path = tmp_path / "schedule.json"
    path.write_text(json.dumps({**WRITTEN, "folder": str(tmp_path)}), encoding="utf-8")
    (tmp_path / "git").mkdir()
    lock = tmp_path / "git" / scheduled.LOCK
    first = os.fork()
    if first == 0:
        assert scheduled.alone(lock) == ""
        # As the start becomes its program, which keeps the lock.
        os.execv(sys.executable, [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"])
    os.waitpid(first, os.WUNTRACED)
    # There is no repository here: whoever went on would fail, and not with this status.
    assert scheduled.main([str(path)]) == scheduled.BUSY
    assert f"Another run of the schedule is running: process {first}." in capsys.readouterr().err
    os.kill(first, 9)
    os.waitpid(first, 0)
    assert scheduled.main([str(path)]) == scheduled.CANNOT_TELL
    assert lock.read_text() == f"{os.getpid()}\n"


def test_what_the_unit_starts_finds_the_program_of_the_installed_revision(tmp_path: Path) -> None:
    """The file that the role writes, with a Python that knows nothing of the checkout."""
    role = ROOT / "roles" / "reprovision"
    environment = Environment(trim_blocks=True)
    environment.filters["to_json"] = json.dumps
    text = environment.from_string((role / "templates" / "start.py.j2").read_text(encoding="utf-8"))
    start = tmp_path / "start"
    start.write_text(text.render(reprovision_dir=str(tmp_path), reprovision_user=getpass.getuser()), encoding="utf-8")

    python = without_checkout(tmp_path / "environment")

    def ended() -> tuple[int, str]:
        argv = [python, "-I", str(start), str(tmp_path / "schedule.json")]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path)
        return done.returncode, done.stderr

    # 1 would say that drift is left.
    status, said = ended()
    assert status == 2 and "ModuleNotFoundError" in said
    (tmp_path / "git").mkdir()
    (tmp_path / "git" / "installed").symlink_to(role.parents[1])
    status, said = ended()
    assert status == 2 and said.startswith("Error: The schedule") and "Traceback" not in said


def test_a_program_that_cannot_be_imported_cannot_tell(schedule: scheduled.Schedule, tmp_path: Path) -> None:
    argv, environ = scheduled.command(schedule, GOOD, tmp_path, [], missed=False)
    argv[0] = without_checkout(tmp_path / "environment")
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60, env=environ)
    assert done.returncode == 2 and "No module named trainyard" in done.stderr


def test_playbooks_find_the_code_of_the_revision(schedule: scheduled.Schedule, tmp_path: Path) -> None:
    """The environment of a schedule has the locked packages and no checkout; rules of a site read `workloads`, too."""
    _, environ = scheduled.command(schedule, GOOD, ROOT, [], missed=False)
    python = without_checkout(tmp_path / "environment")
    argv = [python, "-s", "-P", "-m", "ansible", "playbook", "playbooks/_validate.yml", "-i", "inventories/lab"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120, env=environ, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_from_the_timer_to_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a real repository: what it becomes, where, and what is left when that is over."""
    folder = tmp_path / "place"
    (folder / "git").mkdir(parents=True)
    (folder / "worktrees").mkdir()
    names = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    bare = folder / "git" / "repository.git"
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(bare)], check=True)
    subprocess.run(["git", "clone", "--quiet", str(bare), str(tmp_path / "clone")], check=True, capture_output=True)
    (tmp_path / "clone" / "bundle.lock.yml").write_text("artefacts: {kubernetes: {version: v1}}", encoding="utf-8")
    for words in (["add", "-A"], ["commit", "--quiet", "-m", "x"], ["push", "--quiet", "origin", "HEAD:main"]):
        subprocess.run(["git", "-C", str(tmp_path / "clone"), *words], env={**os.environ, **names}, check=True)
    path = tmp_path / "schedule.json"
    path.write_text(json.dumps({**WRITTEN, "folder": str(folder)}), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    become: list[tuple[str, list[str], Mapping[str, str]]] = []
    schedule = scheduled.Schedule.read(path)
    ends = Deadline(time.monotonic() + 100)
    scheduled.start(
        schedule, scheduled.repository_of(schedule, ends), [], ends, become=lambda *given: become.append(given)
    )
    ((program, _, environ),) = become
    (worktree,) = [each for each in (folder / "worktrees").iterdir() if each.is_dir()]
    assert Path.cwd() == worktree and (worktree / "bundle.lock.yml").is_file()
    assert (program, environ["PYTHONPATH"]) == (
        f"{folder}/environment/bin/python",
        f"{worktree}/src:{worktree}/workloads",
    )
    assert environ["HOME"] == os.environ["HOME"] and VARIABLE in environ
    assert environ["TRAINYARD_DEADLINE"] == f"{ends.ends:.3f}"
    # This process has not become the program and lives on, so its worktree stays.
    assert scheduled.main([str(path), "--clean"]) == 0
    assert worktree.is_dir()
