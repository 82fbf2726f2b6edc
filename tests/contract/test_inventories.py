"""The inventories of the repository pass their own validation, and their hosts are checked first."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT

INVENTORIES = sorted(path.parent for path in (ROOT / "inventories").glob("*/hosts.yml"))


def play(inventory: Path, playbook: str, *flags: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("ansible-playbook")
    return subprocess.run(
        [str(program), "-i", str(inventory), str(ROOT / playbook), *flags],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("inventory", INVENTORIES, ids=lambda path: path.name)
def test_is_valid(inventory: Path) -> None:
    found = play(inventory, "playbooks/_validate.yml")
    text = found.stdout + found.stderr
    # The lab may be looked at by anybody and made by root only.
    problems = [line for line in text.splitlines() if line.startswith("  - ") and "not root" not in line]
    assert not problems, "\n".join(problems)
    assert found.returncode == 0 or "not root" in text, text


@pytest.mark.parametrize(("inventory", "hosts"), [("example", {"cp1", "worker1", "worker2"}), ("lab", set())])
def test_real_hosts_are_checked_before_the_first_change(inventory: str, hosts: set[str]) -> None:
    """The lab's hosts do not exist yet when a run begins."""
    listed = play(ROOT / "inventories" / inventory, "site.yml", "--list-hosts").stdout
    plays = re.findall(
        r"play #\d+ \(.*?\): (.*?)\tTAGS.*?\n    pattern:.*\n    hosts \(\d+\):((?:\n      \S+)*)", listed
    )
    names = [name for name, _ in plays]
    assert names[:3] == ["Validate the inputs", "Check the hosts", "Prepare the artefacts"], listed
    assert set(plays[1][1].split()) == hosts
