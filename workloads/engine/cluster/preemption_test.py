"""Tests of SIGTERM with and without something to save, even while the main thread is blocked."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

WORKLOADS = Path(__file__).parents[2]
HEAD = """
import os, sys, time
from engine.cluster.preemption import Preemption
say = lambda: print("up", flush=True)
"""
IMMEDIATE = "Preemption(); say(); time.sleep(30)"
DEFERRED = """
p = Preemption()
p.defer(lambda: None)
say()
while not p.requested:
    time.sleep(0.05)
sys.exit(7)
"""
REQUESTED = """
p = Preemption()
said = []
p.defer(lambda: said.append(1))
p.request()
say()
time.sleep(1)
sys.exit(10 + len(said))
"""
# A mutex that is never released simulates a call that blocks inside TensorFlow.
BLOCKED = """
import threading
p = Preemption()
p.defer(lambda: os._exit(9))
say()
lock = threading.Lock()
lock.acquire()
lock.acquire()
"""


@pytest.mark.parametrize(("body", "code"), [(IMMEDIATE, 42), (DEFERRED, 7), (REQUESTED, 11), (BLOCKED, 9)])
def test_sigterm(body, code):
    program = HEAD + body
    process = subprocess.Popen(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(WORKLOADS)}, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == code
    finally:
        process.kill()
        process.stdout.close()
