"""The callback times_and_receipt, in real runs of ansible-playbook with this project's ansible.cfg."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PLAY = """
- name: Judge
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Judge a site without a cluster
      {task}
"""
JUDGE = (
    "verify_site: {kubeconfig: /nonexistent/kubeconfig, nodes: [cp1], kubelet_version: '1', containerd_version: '2'}"
)


def play(folder: Path, task: str) -> list[str]:
    """Run one task and give back the lines that the user sees."""
    playbook = folder / "play.yml"
    playbook.write_text(PLAY.format(task=task), encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1", "PATH": path}
    command = ["ansible-playbook", str(playbook)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    return ran.stdout.splitlines()


def test_the_receipt_comes_last(tmp_path: Path) -> None:
    lines = play(tmp_path, JUDGE)
    (begin,) = (number for number, line in enumerate(lines) if line.startswith("RECEIPT"))
    (times,) = (number for number, line in enumerate(lines) if line.startswith("TASKS RECAP"))
    assert times < begin
    table = [line for line in lines[begin + 1 :] if line.strip()]
    assert table[0].split() == ["check", "result", "detail"]
    assert any(line.split() == ["verdict", "unknown"] for line in table)
    assert not any("*" in line for line in table), "Ansible said something after the receipt"


@pytest.mark.parametrize("task", ["ansible.builtin.ping:", "ansible.builtin.debug: {msg: verify_site}"])
def test_a_run_without_a_verdict_has_times_and_no_receipt(tmp_path: Path, task: str) -> None:
    lines = play(tmp_path, task)
    assert any(line.startswith("TASKS RECAP") for line in lines)
    assert not any(line.startswith("RECEIPT") for line in lines)
