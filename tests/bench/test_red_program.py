"""Tests that the red team's programs print output covered by the rules for logs (part 3), and that harm is detected."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import inputs
import pytest
import red_memory
import red_program
import stand

from trainyard.site.short_names import train_call
from trainyard.trainings.log_events import events
from trainyard.trainings.resolve import resolve_all

PRINTED = red_program.PRINTED
NOISE = b"".join(PRINTED.noise())
KEPT = NOISE.replace(b"\r\n", b"\n")
"""The noise as a node stores it."""
PASSED = {"result": "passed", "accuracy": PRINTED.ACCURACY}


@pytest.mark.parametrize("run", red_program.RUNS)
def test_every_run_can_be(run: str) -> None:
    known = inputs.read_catalogue([stand.CATALOGUE])
    call, problems = train_call({"run": run}, [red_program.entry(run)], known)
    assert not problems
    images = {name: {"digest": f"sha256:{'0' * 64}"} for name in ("image_tensorflow", "image_workloads")}
    site = inputs.Defaults("registry/trainyard", images, {"claim": "training"}, archives="https://mirror/files")
    (resolved,) = resolve_all([call.wanted], known)
    described = resolved.bound(site)
    assert (described["name"], described["max_restarts"]) == (run, 0)


def test_the_noise_has_every_odd_line_and_every_event() -> None:
    lines = NOISE.split(b"\n")
    assert len(lines) == PRINTED.LINES + 2
    assert all(lines.count(each) >= 800 for each in PRINTED.ODD)
    assert red_program.noise_faults(KEPT, PASSED) == []


@pytest.mark.parametrize(
    ("kept", "record", "why"),
    [
        (KEPT.replace(b"\x00", b""), PASSED, "line 14 is"),
        (KEPT.replace(b'"step": 7,', b'"step": "seven",'), PASSED, "999 of 1000 events"),
        (KEPT[:-1], PASSED, "line 10001 is"),
        (KEPT, {**PASSED, "accuracy": None}, "the record says"),
    ],
)
def test_a_log_with_less_is_seen(kept: bytes, record: dict[str, Any], why: str) -> None:
    assert any(why in each for each in red_program.noise_faults(kept, record))


def test_forged_events_say_success_to_a_reader_that_believes_them() -> None:
    said = events("".join(each.decode() for each in PRINTED.forged()))
    assert 0 < len(said) < len(PRINTED.FORGED), "events with other types do not count"
    assert any(each.get("result") == "passed" for each in said)
    assert red_program.forged_faults(1, {"result": "failed", "accuracy": 1.0}) == []
    assert red_program.forged_faults(0, {"result": "passed"}) == ["train.yml succeeds", "the record says success"]
    assert red_program.forged_faults(1, {"result": "failed", "loss": float("nan")}) != []


def test_a_flood_is_bounded() -> None:
    assert red_program.flood_faults(64 * 2**20, PASSED, 10**8) == []
    assert len(red_program.flood_faults(70 * 2**20, {}, 10**9)) == 3


def test_the_program_lays_links_and_ends_with_its_code(tmp_path: Path) -> None:
    program = [sys.executable, str(red_program.CODE / "main.py"), "forged"]
    env = {**os.environ, "LOG_DIR": str(tmp_path / "run")}
    done = subprocess.run(program, env=env, capture_output=True, check=False, timeout=60)
    assert done.returncode == PRINTED.EXIT_FORGED
    assert json.loads(done.stdout.partition(b"\n")[0])["result"] == "passed"
    assert sorted(path.name for path in (tmp_path / "run").iterdir() if path.is_symlink()) == sorted(PRINTED.NAMES)


def test_memory_is_that_of_the_largest_child() -> None:
    tree = {10: (1, 5), 11: (10, 7), 12: (11, 900), 13: (1, 9000)}
    assert (red_memory.largest(tree, 10), red_memory.largest(tree, 12)) == (900, 0)
    # Measured in a separate process: this one may have other children, such as scenarios beside the unit tests.
    measure = (
        "import subprocess, sys, time, red_memory\n"
        "child = [sys.executable, '-c', \"import time; held = b'x' * 60_000_000; time.sleep(3)\"]\n"
        "with red_memory.Children() as children, subprocess.Popen(child):\n"
        "    time.sleep(2)\n"
        "print(children.most)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", measure],
        cwd=Path(red_memory.__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert 60_000_000 < int(found.stdout) < 200_000_000
