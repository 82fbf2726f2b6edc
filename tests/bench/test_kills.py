"""Tests that the checks after a fault can fail, and that each fault is part of `make proof` once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import hindrances
import kill_kinds
import pytest
from kills import amiss
from page import PAGE, markers
from schedule_stand import Ended

from tests.lab.test_proof import PROGRAMS

ITEM = {"subject": "sysctl", "done": "repaired, proven"}
CUT: dict[str, Any] = {"id": "20270101T000000Z-aaaa", "state": "interrupted", "verdict": None, "items": []}
LAST: dict[str, Any] = {"id": "20270101T000100Z-bbbb", "state": "complete", "verdict": "pass", "items": [ITEM]}
CLEAN: dict[str, Any] = {"reports": [CUT, LAST], "left": [], "broken": [], "processes": []}


def with_last(**changes: Any) -> dict[str, Any]:
    return {**CLEAN, "reports": [CUT, {**LAST, **changes}]}


@pytest.mark.parametrize(
    ("status", "found", "held", "said"),
    [
        (0, CLEAN, False, ""),
        (0, with_last(items=[]), False, ""),
        (4, CLEAN, False, "it ended with 4: who"),
        (0, CLEAN, True, "the lease is still there"),
        (0, with_last(verdict="fail"), False, "its verdict is fail"),
        (0, with_last(items=[{**ITEM, "done": "repaired"}]), False, "sysctl: repaired"),
        (0, {**CLEAN, "reports": [{**CUT, "state": "running"}, LAST]}, False, "aaaa was never closed"),
        (0, {**CLEAN, "reports": [None, LAST]}, False, "a report cannot be read"),
        (0, {**CLEAN, "reports": []}, False, "there is no report"),
        (0, {**CLEAN, "left": ["/x/last-good.lock"]}, False, "left: /x/last-good.lock"),
        (0, {**CLEAN, "broken": ["/x/state.json"]}, False, "broken: /x/state.json"),
        (0, {**CLEAN, "processes": ["12 ssh"]}, False, "processes: 12 ssh"),
    ],
)
def test_what_is_amiss_after_it(status: int, found: dict[str, Any], held: bool, said: str) -> None:
    told = "; ".join(amiss(Ended(status, 1.0, "who"), found, held))
    assert said in told and bool(told) == bool(said)


def test_every_mishap_is_in_one_part() -> None:
    asked = [words[words.index("--only") + 1] for words in PROGRAMS.values() if "tests/bench/kills.py" in words]
    assert sorted(",".join(asked).split(",")) == sorted(kill_kinds.MISHAPS)
    assert len({what.words for what in kill_kinds.MISHAPS.values()}) == len(kill_kinds.MISHAPS)


def test_the_points_of_the_kills_lie_in_each_tenth_of_a_converge() -> None:
    shares = [kill_kinds.MISHAPS[f"kill_{number}"].share for number in range(kill_kinds.KILLS)]
    assert [high for _, high in shares[:-1]] == [low for low, _ in shares[1:]]
    assert (shares[0][0], shares[-1][1]) == (0.0, kill_kinds.LATEST)


@pytest.mark.parametrize("name", ["schedule", "kills"])
def test_the_page_has_a_place_for_the_table(name: str) -> None:
    assert all(PAGE.read_text(encoding="utf-8").count(each) == 1 for each in markers(name))


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a compiler, which a machine with labs has")
def test_a_clock_that_is_shifted(tmp_path: Path) -> None:
    shift = tmp_path / "shift"
    library = hindrances.build(tmp_path / "clock.so", str(shift))

    def told() -> list[float]:
        ask = "import time, datetime; print(time.time(), datetime.datetime.now().timestamp(), time.monotonic())"
        env = {**os.environ, "LD_PRELOAD": str(library)}
        argv = [sys.executable, "-I", "-c", ask]
        return [float(each) for each in subprocess.run(argv, env=env, capture_output=True, check=True).stdout.split()]

    assert abs(told()[0] - time.time()) < 60
    shift.write_text(f"{hindrances.JUMP_SECONDS}\n")
    now, calendar, monotonic = told()
    for each in (now, calendar):
        assert abs(each - time.time() - hindrances.JUMP_SECONDS) < 60
    assert abs(monotonic - time.monotonic()) < 60
