"""Runs of one GPU role in check mode, on hosts that are this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.playbooks.gpu_fakes import FAKES
from tests.unit.playbooks.runs import ROOT, copy, play, put_fakes

PLAY = """
- hosts: {hosts}
  gather_facts: false
  tasks:
    - distribution: {{name: {distribution}}}
    - ansible.builtin.include_role:
        name: {role}
        tasks_from: {entry}
"""

GPUS = """
all:
  vars: {supply: mirror}
  children:
    gpu_nodes:
      hosts:
        w1: {device_plugin_sharing: time_slicing, device_plugin_replicas: 4}
        w2: {kubernetes_node_name: second, device_plugin_mig_strategy: single}
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = copy(tmp_path_factory.mktemp("checkout"))
    (folder / "roles").symlink_to(ROOT / "roles")
    (folder / "bundle.lock.yml").symlink_to(ROOT / "bundle.lock.yml")
    (folder / "plugins" / "action" / "gpu_info.py").unlink()
    put_fakes(folder, FAKES)
    return folder


def run(
    checkout: Path,
    folder: Path,
    role: str,
    *arguments: str,
    distribution: str = "Debian",
    hosts: str = "gpu_nodes",
    entry: str = "main",
) -> Any:
    """Status, what the fakes were given, and the output."""
    (folder / "gpus.yml").write_text(GPUS, encoding="utf-8")
    play_file = checkout / "playbooks" / "one_role.yml"
    play_file.write_text(PLAY.format(role=role, distribution=distribution, hosts=hosts, entry=entry), encoding="utf-8")
    arguments = ("-i", str(folder / "gpus.yml"), "--check", *arguments)
    status, touched, output = play(checkout, folder, "playbooks/one_role.yml", *arguments)
    given = [json.loads((folder / "touched" / name).read_text(encoding="utf-8")) for name in touched]
    return status, [each for part in given for each in part], output
