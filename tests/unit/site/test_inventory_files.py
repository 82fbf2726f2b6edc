"""A file that a program has left in an inventory's folder is refused before Ansible uses its values."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from checkout import ROOT

from trainyard.site.inventory_file_rules import unexpected_files

HOSTILE = "[all:vars]\nansible_host={{ lookup('ansible.builtin.pipe', 'touch made') }}\n"
EXTENSIONS = (".pyc", ".bak", "~", ".cfg")


@pytest.mark.parametrize(
    "name",
    [
        *("mnist-chief-0-0-abcde.log", "README.md", "a", "deep/b.log", "hosts.d/x.txt", "x.ini"),
        *("hosts-chief-0-0-abcde.log", "hosts.log", "hosts-chief-0-0-abcde.LOG", "deep/hosts.Log"),
    ],
)
def test_a_file_that_is_no_inventory_is_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(HOSTILE)
    assert unexpected_files([str(tmp_path)], EXTENSIONS) == [str(path)]


@pytest.mark.parametrize(
    "name",
    ["hosts", "hosts.ini", "a.yml", "a.yaml", "a.json", ".hidden", "a.bak", "a~", "group_vars/all", "host_vars/w"],
)
def test_files_that_people_write_are_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("")
    assert unexpected_files([str(tmp_path), "host1,host2,", str(tmp_path / "none")], EXTENSIONS) == []


def test_a_program_that_prints_an_inventory_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "cloud").write_text("#!/bin/sh\n")
    (tmp_path / "cloud").chmod(0o755)
    assert unexpected_files([str(tmp_path)], EXTENSIONS) == []


def test_a_log_that_may_be_executed_is_named(tmp_path: Path) -> None:
    log = tmp_path / "hosts-chief-0-0-abcde.log"
    log.write_text(HOSTILE)
    log.chmod(0o755)
    assert unexpected_files([str(tmp_path)], EXTENSIONS) == [str(log)]


def test_the_site_is_refused(tmp_path: Path) -> None:
    for name in ("hosts.yml", "group_vars"):
        os.symlink(ROOT / "inventories" / "lab" / name, tmp_path / name)
    log = tmp_path / "mnist-chief-0-0-abcde.log"
    log.write_text(HOSTILE)
    command = ["ansible-playbook", "playbooks/_validate.yml", "-i", str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 1 and f"inventory file is {log}" in ran.stderr, ran.stdout + ran.stderr
    assert not any((ROOT / folder / "made").exists() for folder in ("", "playbooks"))
