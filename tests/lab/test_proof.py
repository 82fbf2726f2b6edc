"""`make proof`: tests too long for `make test`. Each part runs alone and writes its line to docs/reference/proof.md."""

from __future__ import annotations

import os
import platform
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.lab.proof_page import PAGE, head, with_row
from tests.lab.suite import environment, playbook, run, run_scenario, scenarios

LIMIT = 40 * 60
"""Seconds per part."""

SCENARIOS = {scenario.name: scenario for scenario in scenarios() if scenario.suite == "proof"}
DRILLS = "worker_kill,ps_kill,chief_kill,worker_evict,ps_evict,chief_evict,node_off_worker,node_off"
KILLS = [f"kill_{number}" for number in range(10)]
POWER_CUTS = "controller_off_0,controller_off_1,controller_off_2,worker_off_0,worker_off_1"
ASK_THE_INDEX = ("tests/contract/test_requirements.py", "tests/contract/test_compat_columns.py")
PROGRAMS = {
    "bare": [sys.executable, "tests/bench/bare.py"],
    "bench": [sys.executable, "tests/bench/compare.py", "--pairs", "2"],
    "browser": [sys.executable, "-m", "pytest", "-m", "browser", "tests/browser"],
    "catalogue": [sys.executable, "tests/bench/catalogue.py"],
    "console": [sys.executable, "tests/bench/console.py"],
    "console_load": [sys.executable, "-m", "pytest", "-m", "proof", "tests/unit/console/test_load.py"],
    "cuts": [sys.executable, "tests/bench/drills.py", "--only", "node_back,net_cut,net_back"],
    "drift": [sys.executable, "tests/bench/drift.py"],
    "drift_machine": [sys.executable, "tests/bench/drift.py", "--shape", "machine"],
    "drift_member": [sys.executable, "tests/bench/drift.py", "--shape", "three"],
    "drills": [sys.executable, "tests/bench/drills.py", "--only", DRILLS],
    "efs_playbooks": [sys.executable, "-m", "pytest", "-m", "proof", "tests/unit/aws/test_role.py"],
    "evaluator": [sys.executable, "tests/bench/evaluator.py"],
    "gpu_image": [sys.executable, "tests/bench/gpu_image.py"],
    "gpu_jobs": [sys.executable, "tests/bench/gpu_jobs.py"],
    "harm": [sys.executable, "tests/bench/harm.py"],
    "hindrances": [sys.executable, "tests/bench/kills.py", "--only", "disk,webhook,clock,network"],
    "killed": [sys.executable, "-m", "pytest", "-m", "proof", "tests/unit/aws/test_killed.py"],
    "kills": [sys.executable, "tests/bench/kills.py", "--only", ",".join(KILLS[:5])],
    "kills_late": [sys.executable, "tests/bench/kills.py", "--only", ",".join(KILLS[5:])],
    "notebook": [sys.executable, "tests/bench/notebook.py"],
    "power_cuts": [sys.executable, "tests/bench/kills.py", "--only", POWER_CUTS],
    "red_network": [sys.executable, "tests/bench/red_network.py"],
    "red_node": [sys.executable, "tests/bench/red_node.py"],
    "red_operator": [sys.executable, "tests/bench/red_operator.py"],
    "red_program": [sys.executable, "tests/bench/red_program.py"],
    "schedule": [sys.executable, "tests/bench/schedule.py", "--only", "runs"],
    "shared": [sys.executable, "tests/bench/shared.py"],
    "starts": [sys.executable, "tests/bench/schedule.py", "--only", "starts"],
    "why": [sys.executable, "tests/bench/why.py"],
    "why_together": [sys.executable, "tests/bench/why_together.py"],
    "wide": [sys.executable, "tests/bench/wide.py"],
    "zoo_controller": [sys.executable, "tests/zoo/controller.py"],
    "zoo_firewall": [sys.executable, "tests/zoo/works.py", "zoo_firewall"],
    "zoo_owner": [sys.executable, "tests/zoo/works.py", "zoo_owner"],
    "zoo_network": [sys.executable, "tests/zoo/works.py", "zoo_network"],
    "zoo_refused": [sys.executable, "tests/zoo/refused.py"],
    "requirements": [sys.executable, "-m", "pytest", "-m", "proof", *ASK_THE_INDEX],
}
"""Parts that are programs; most write their own table to docs/benchmarks.md. Drills, kills and the schedule are split,
because they exceed the limit of one part."""

pytestmark = [
    pytest.mark.lab,
    pytest.mark.slow,
    pytest.mark.proof,
    pytest.mark.skipif(os.geteuid() != 0, reason="a lab needs root"),
]


def _record(part: str, seconds: float, steps: str) -> None:
    """Write the line of a part that passed."""
    machine = f"{os.cpu_count()} cores, kernel {platform.release()}"
    row = f"| {part} | {datetime.now(UTC):%Y-%m-%d} | {head()} | {machine} | {seconds:.0f} s | {steps} |"
    PAGE.write_text(with_row(PAGE.read_text(encoding="utf-8"), part, row), encoding="utf-8")


@pytest.mark.parametrize("part", SCENARIOS)
def test_scenario_part(part: str, tmp_path: Path) -> None:
    begin = time.monotonic()
    steps = run_scenario(SCENARIOS[part], tmp_path, LIMIT)
    run(playbook("lab_down.yml"), tmp_path / "down.log", 120, environment())
    _record(part, time.monotonic() - begin, ", ".join(steps[1:]))


@pytest.mark.parametrize("part", PROGRAMS)
def test_program_part(part: str, tmp_path: Path) -> None:
    begin = time.monotonic()
    run(PROGRAMS[part], tmp_path / "log", LIMIT, environment(), show=True)
    _record(part, time.monotonic() - begin, "")
