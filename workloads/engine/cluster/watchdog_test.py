"""Tests that the watchdog ends a process without progress, and only that."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

from engine.cluster.watchdog import Watchdog
from engine.errors import ExitCode


def started(limit: float):
    """Return a watchdog whose end is recorded: (watchdog, codes, reports, event set at the end)."""
    codes, reports, left = [], [], threading.Event()

    def leave(code):
        codes.append(code)
        left.set()

    watchdog = Watchdog(limit, reports.append, leave)
    watchdog.start()
    return watchdog, codes, reports, left


def test_silence_ends_the_process_with_what_is_known():
    watchdog, codes, reports, left = started(0.2)
    watchdog.beat("training", 40)
    assert left.wait(5)
    assert codes == [ExitCode.STALLED]
    assert (reports[0]["activity"], reports[0]["step"]) == ("training", 40)
    assert reports[0]["stalled_seconds"] >= 0.2


def test_beats_keep_the_process():
    watchdog, codes, _, _ = started(1.0)
    for step in range(15):
        watchdog.beat("training", step)
        time.sleep(0.1)
    watchdog.stop()
    watchdog.join(5)
    assert codes == []


def test_a_shortened_limit_is_a_deadline_that_beats_do_not_move():
    watchdog, codes, _, left = started(600)
    begun = time.monotonic()
    watchdog.shorten(0.5)
    watchdog.shorten(900)
    while not left.wait(0.05):
        watchdog.beat("training")
        assert time.monotonic() - begun < 5
    assert time.monotonic() - begun >= 0.5
    assert codes == [ExitCode.STALLED]


HELD = """
import ctypes, time
from engine.cluster import watchdog
watchdog._TIMER_SECONDS = 1.0
watched = watchdog.Watchdog(0.5, print)
watched.start()
time.sleep(0.2)
ctypes.PyDLL(None).sleep(60)
"""
"""A process whose main thread holds the interpreter lock in a library, as `PyDLL` does, unlike `CDLL`."""


def test_a_process_whose_interpreter_is_held_up_ends_too():
    held = subprocess.run(
        [sys.executable, "-c", HELD],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=False,
        timeout=30,
        text=True,
    )
    assert (held.returncode, held.stdout) == (1, "")
    assert "Timeout" in held.stderr and 'File "<string>", line 8' in held.stderr
