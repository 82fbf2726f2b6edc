"""The endpoint is looked up on the hosts and on the controller, before anything is changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.playbooks.runs import ROOT

PLAYBOOK = """
- hosts: all
  connection: local
  gather_facts: false
  tasks:
    - import_role: {name: kubernetes, tasks_from: endpoint}
"""
UNKNOWN = "nobody.invalid"
"""A name that no DNS server may know (RFC 6761)."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("endpoint", "entries", "refused"),
    [
        (f"{UNKNOWN}:6443", {}, "node1 and localhost cannot resolve"),
        (f"{UNKNOWN}:6443", {UNKNOWN: "127.0.0.1"}, "localhost cannot resolve"),
        ("[::1]:6443", {}, ""),
    ],
)
def test_endpoint_that_does_not_resolve(tmp_path: Path, endpoint: str, entries: dict[str, str], refused: str) -> None:
    playbook = tmp_path / "playbook.yml"
    playbook.write_text(PLAYBOOK, encoding="utf-8")
    variables = {
        "ansible_python_interpreter": sys.executable,
        "control_plane_endpoint": endpoint,
        "base_hosts_entries": entries,
        "supply": "vendors",
    }
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    done = subprocess.run(
        [program, "-i", "node1,", "-e", json.dumps(variables), str(playbook)],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    said = " ".join(done.stdout.split())
    assert (done.returncode != 0) == bool(refused), said + done.stderr
    assert refused in said
    assert refused == "" or said.count("cannot resolve") == said.count(refused)
