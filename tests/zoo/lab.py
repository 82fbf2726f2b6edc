"""The lab of the zoo: addresses of its nodes, and playbooks on them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LAB = "trainyard-zoo"
NETWORK = "10.89.0"
FIRST = 21
LIMIT = 900.0
"""Seconds for one playbook."""

Result = Mapping[str, Any]


def address_of(number: int) -> str:
    """Return the address of the host with this number."""
    return f"{NETWORK}.{FIRST + number}"


def in_lab(hosts: Mapping[str, Mapping[str, Any]]) -> dict[str, None]:
    """Return the members of the group lab_hosts: those that the inventory has at their own addresses."""
    return {name: None for name, values in hosts.items() if values["ansible_host"] == values["zoo_address"]}


def play(playbook: str, hosts: Path, log: Path, *, report: bool = False) -> tuple[int, str]:
    """Run a playbook; return its exit status and its output, as JSON for a report."""
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    if report:
        # Only JSON: the project's own callbacks print as well.
        environment |= {"ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json", "ANSIBLE_CALLBACKS_ENABLED": "inventory_files"}
    extra = ["-e", json.dumps({"lab_name": LAB, "lab_subnet": f"{NETWORK}.0/24", "lab_confirm": LAB})]
    done = subprocess.run(
        ["ansible-playbook", playbook, "-i", str(hosts), *extra],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    log.write_text(done.stdout + done.stderr, encoding="utf-8")
    return done.returncode, done.stdout


def reported(hosts: Path, log: Path) -> tuple[int, dict[str, Result]]:
    """Return the exit status of check_hosts.yml, and its result for each host."""
    status, output = play("playbooks/check_hosts.yml", hosts, log, report=True)
    plays = json.loads(output[output.index("{") :])["plays"]
    results = [
        task["hosts"]["localhost"]
        for each in plays
        for task in each["tasks"]
        if task["task"]["name"] == "Collect the results"
    ]
    if not results:
        raise SystemExit(f"check_hosts.yml ended without a report: {output[-8000:]}")
    return status, results[-1]["hosts"]
