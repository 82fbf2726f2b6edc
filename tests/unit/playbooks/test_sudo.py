"""A host whose sudo asks for a password drops out by name, before anything is changed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.playbooks.runs import ROOT

# Several seconds for each run.
pytestmark = pytest.mark.slow

# What sudo says with -n, which Ansible adds where it has no password, and what it says of a wrong one.
SUDO = """#!/bin/sh
case "$*" in
  *" -n "*) echo "sudo: a password is required" >&2; exit 1;;
esac
echo "sudo: unable to initialize the policy plugin" >&2; exit 1
"""


@pytest.mark.parametrize(
    ("password", "said", "remedy"),
    [
        (
            "",
            "The host cp1 cannot be a node: - the login user cannot become root: ",
            " add --ask-become-pass, or set ansible_become_password for the host in a vault.",
        ),
        ("secret", "unable to initialize the policy plugin", ""),
    ],
)
def test_sudo_without_its_password(tmp_path: Path, password: str, said: str, remedy: str) -> None:
    sudo = tmp_path / "sudo"
    sudo.write_text(SUDO, encoding="utf-8")
    sudo.chmod(0o755)
    variables = f"{{ansible_connection: local, ansible_become_exe: {sudo}, ansible_become_password: '{password}'}}"
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(f"all: {{children: {{cluster: {{hosts: {{cp1: {variables}}}}}}}}}", encoding="utf-8")
    done = subprocess.run(
        [str(Path(sys.executable).with_name("ansible-playbook")), "playbooks/_check_hosts.yml", "-i", str(inventory)],
        cwd=ROOT,
        # Root need not become root, unless this says so.
        env={**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_BECOME_ALLOW_SAME_USER": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    output = " ".join(done.stdout.split())
    assert done.returncode == 2, output
    assert said in output and remedy in output
    assert ("--ask-become-pass" in output) == bool(remedy)
    assert "Refuse hosts that cannot be nodes" not in output, "nothing else is asked of it"
    assert "changed=0" in output and "failed=1" in output
