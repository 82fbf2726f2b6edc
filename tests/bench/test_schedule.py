"""Tests of the schedule programs: their evaluation of remnants, and the site that they create."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import schedule_judge
import schedule_probe
import schedule_site
import schedule_stand
import secret
import yaml
from inputs import ROOT
from schedule_stand import Ended
from timed import BenchError

from trainyard.project import python_path

CLEAN: dict[str, Any] = {
    "state": "complete", "exit_status": 0, "verdict": "pass", "headline": "clean", "items": [], "consequences": [],
    "repaired": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (CLEAN, ""),
        (None, "no complete report"),
        ({**CLEAN, "state": "interrupted"}, "no complete report"),
        ({**CLEAN, "exit_status": 1}, "it ended with 1"),
        ({**CLEAN, "verdict": None}, "verdict None"),
        ({**CLEAN, "items": [{"subject": "sysctl x"}]}, "sysctl x"),
        ({**CLEAN, "repaired": ["key"]}, "repaired"),
        ({**CLEAN, "consequences": [{}]}, "it has items"),
    ],
)
def test_a_run_of_an_untouched_site(report: dict[str, Any] | None, said: str) -> None:
    told = schedule_judge.wrong(report)
    assert said in told and bool(told) == bool(said)


def test_of_several_starts_one_runs_and_the_others_are_refused_soon() -> None:
    one, others = Ended(0, 50.0, ""), [Ended(4, 1.5, "")] * 7
    assert schedule_judge.refused([*others, one]) == [1.5] * 7
    for ends, said in (
        ([one, one, *others[1:]], r"\[0, 0, 4"),
        (others, r"\[4, 4"),
        ([one, *others, Ended(2, 1.0, "no disk")], "no disk"),
        ([one, *others, Ended(4, 5.1, "")], r"after 5\.1 s"),
    ):
        with pytest.raises(BenchError, match=said):
            schedule_judge.refused(ends)


def test_growth_leaves_the_first_runs_out_and_one_outlier_does_not_count() -> None:
    flat = [10.0, 50.0, 70.0, 90.0, 95.0, *[100.0] * 20]
    assert schedule_judge.growth(flat) == 0
    assert schedule_judge.growth([*flat[:-1], 900.0]) == 0
    assert schedule_judge.growth([*flat, *[106.0] * 5]) == pytest.approx(0.06)
    with pytest.raises(BenchError, match="too few"):
        schedule_judge.growth([1.0] * 14)


def test_files_that_are_kept_are_those_that_the_role_keeps() -> None:
    defaults = yaml.safe_load((ROOT / "roles/reprovision/defaults/main.yml").read_text(encoding="utf-8"))
    assert defaults["reprovision_keep_runs"] == schedule_judge.KEPT_RUNS
    assert (schedule_judge.files_kept(1), schedule_judge.files_kept(30)) == (4, 100)


def test_what_is_left_on_the_host(tmp_path: Path) -> None:
    folder, other, proc = tmp_path / "schedule", tmp_path / "tmp", tmp_path / "proc"
    run = folder / "site" / "reprovision" / "runs" / "20270101T000000Z-abcd"
    for each in (run, folder / "worktrees", folder / "git" / "repository.git" / "refs", other, proc / "1234"):
        each.mkdir(parents=True)
    (run / "report.json").write_text("{}")
    (folder / "site" / "kubeconfig").write_text("no JSON")
    (folder / "git" / "repository.git" / "trainyard.lock").touch()

    def look(owner: int = -1) -> dict[str, Any]:
        return schedule_probe.look(folder, (other,), owner, proc)

    clean = look()
    assert clean == {"reports": [{}], "files": 1, "bytes": 2, "left": [], "broken": [], "processes": []}
    left = [
        folder / "worktrees" / "1-2",
        folder / "git" / "repository.git" / "refs" / "last-good.lock",
        folder / "site" / ".trainyard-abc",
        run / ".new-abc",
    ]
    for path in left:
        path.touch()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(folder / "socket"))
    (folder / "site" / "broken.json").write_text("{")
    found = look()
    assert found["left"] == sorted(map(str, [*left, folder / "socket"]))
    assert found["broken"] == [str(folder / "site" / "broken.json")]
    (other / "ansible").mkdir()
    (proc / "1234" / "cmdline").write_bytes(b"ssh\0-o\0")
    mine = look(os.geteuid())
    assert str(other / "ansible") in mine["left"] and mine["processes"] == ["1234 ssh -o"]


def test_a_copy_of_the_service_stays_known_and_is_given_a_mode() -> None:
    text = (ROOT / "roles/reprovision/templates/service.j2").read_text(encoding="utf-8")
    copy, plain = schedule_stand.copied(text, "report"), schedule_stand.copied(text)
    assert "\nType=oneshot\nRemainAfterExit=yes\n" in copy
    assert copy.count("/etc/trainyard/reprovision/schedule.json --mode report\n") == 1
    assert "schedule.json --clean\n" in copy and "--mode" not in plain


@pytest.fixture
def inventory(tmp_path: Path) -> tuple[Path, str, Path]:
    folder, vault, canary = tmp_path / "checkout", tmp_path / "vault", secret.new()
    vault.touch(0o600)
    vault.write_text("a password\n")
    schedule_site.check_out(folder)
    schedule_site.write_inventory(folder / "inventories" / "lab", canary, vault)
    return folder, canary, vault


@pytest.mark.slow
def test_the_site_is_one_and_its_secret_is_in_its_vault_alone(inventory: tuple[Path, str, Path]) -> None:
    folder, canary, vault = inventory
    assert (folder / "molecule/reprovision/site/group_vars/all/lab.yml").is_symlink()
    assert secret.search(secret.of_folder(folder), [canary]) == []
    env = {**os.environ, "ANSIBLE_VAULT_PASSWORD_FILE": str(vault), "ANSIBLE_CONFIG": str(folder / "ansible.cfg")}
    env["PYTHONPATH"] = python_path(folder)
    programs = Path(sys.executable).parent
    lab = str(folder / "inventories" / "lab")
    done = subprocess.run(
        [programs / "ansible-playbook", "-i", lab, "playbooks/_validate.yml"],
        cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    shown = subprocess.run(
        [programs / "ansible", "-i", lab, "worker1", "-c", "local", "-m", "debug", "-a", "var=base_hosts_entries"],
        cwd=folder, env=env, capture_output=True, text=True, check=True, timeout=120,
    ).stdout  # fmt: skip
    assert canary in shown
