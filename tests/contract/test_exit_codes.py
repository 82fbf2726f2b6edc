"""Tests that the submitter and the documentation know the exit codes of the trainings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.errors import ExitCode
from tests.unit.training.samples import training
from trainyard.trainings import roles
from trainyard.trainings.follow import REMEDIES
from trainyard.trainings.jobset import failure_policy

ENDS = {ExitCode.BAD_INPUT, ExitCode.BOUND_NOT_REACHED, ExitCode.DIVERGED, ExitCode.VOLUME}
"""Exit codes after which another attempt would end the same way."""


def test_codes_that_another_attempt_does_not_change_fail_the_run() -> None:
    (refused,) = failure_policy(training())["rules"][0]["onJobFailureMessagePatterns"]
    failed = {code for code in ExitCode if re.search(refused, f"failed with exit code {code:d} matching")}
    assert failed == ENDS


def test_both_sides_know_the_same_codes() -> None:
    known = {value for name, value in vars(roles).items() if name.startswith("EXIT_")}
    assert known == set(ExitCode) - {ExitCode.TRAINED, ExitCode.UNEXPECTED}


def test_whoever_reads_of_a_failed_run_is_told_what_to_do() -> None:
    assert ENDS | {ExitCode.STALLED} <= set(REMEDIES)


@pytest.mark.parametrize("page", ["docs/tasks/troubleshooting.md", "workloads/engine/README.md"])
def test_every_failure_has_a_row(root: Path, page: str) -> None:
    text = (root / page).read_text(encoding="utf-8")
    rows = {int(number) for number in re.findall(r"^\| (?:chief exits with |a role exits with )?(\d+) \|", text, re.M)}
    assert ENDS | {ExitCode.PREEMPTED, ExitCode.STALLED} <= rows
