#!/usr/bin/env python3
"""Measure the cost of following a run of 25 pods (1 chief, 8 ps, 16 workers). Prints a line of a Markdown table.

    .venv/bin/python tests/bench/follow.py [--seconds 60] [--pods 25]

The server is a substitute on loopback in a separate process, which is not counted; the follower is the project's own.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import inputs
from served import Run, served

from trainyard.kube.connection import connect
from trainyard.trainings.follow import Follower, Settings
from trainyard.trainings.model import Training
from trainyard.trainings.spec import parse_training

FIRST = "20261121T120000Z-0001"

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: bench
contexts: [{{name: bench, context: {{cluster: bench, user: bench}}}}]
clusters: [{{name: bench, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: bench, user: {{}}}}]
"""
WARM_UP = 35.0
"""Seconds that are not counted: the connection, and the first reading of every log, which is complete."""


def training(ps: int, workers: int) -> Training:
    wanted = {"workload": "mnist_ps", "run": "bench", "train_steps": 10**9, "ps": ps, "worker": workers, "timeout": 0}
    catalogue = inputs.read_catalogue([])
    site = inputs.Defaults(known=False, logs={"claim": "training"})
    return parse_training(inputs.complete(wanted, inputs.entry_of(wanted, catalogue), site))


class Sampler:
    """Samples of the process's CPU time, the server's counts and the age of the shown step, at each shown line."""

    def __init__(self, run: Run, counts: Any) -> None:
        self._run, self._counts = run, counts
        self.samples: list[tuple[float, ...]] = []
        self.ages: list[float] = []

    def say(self, line: str) -> None:
        if ": step " in line and time.time() > self._run.begin + WARM_UP:
            self.samples.append((time.monotonic(), time.process_time(), *self._counts))
            self.ages.append(time.time() - self._run.said_at(int(line.split(": step ")[1].split()[0])))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--pods", type=int, default=25)
    given = parser.parse_args()
    ps = (given.pods - 1) // 3
    wanted = training(ps, given.pods - 1 - ps)
    run = Run(wanted, FIRST, given.seconds + WARM_UP)
    with tempfile.TemporaryDirectory() as folder, served(run) as (port, counts):
        kubeconfig = Path(folder) / "kubeconfig"
        kubeconfig.write_text(KUBECONFIG.format(port=port), encoding="utf-8")
        sampler = Sampler(run, counts)
        settings = Settings(f"{folder}/logs", isolation_probe=False)
        Follower(connect(str(kubeconfig)), wanted, settings, sampler.say).follow(FIRST, submitted=True)
    span, cpu, calls, size = (b - a for a, b in zip(sampler.samples[0], sampler.samples[-1], strict=True))
    print(f"load {os.getloadavg()[0]:.1f}; {span:.0f} s of following\n")
    print("| pods | CPU seconds a minute | of a core | requests/s | KiB/s | age of the step shown, median (most) |")
    print("| --- | --- | --- | --- | --- | --- |")
    cost = f"{60 * cpu / span:.2f} | {100 * cpu / span:.1f} % | {calls / span:.1f} | {size / span / 1024:.0f}"
    print(f"| {given.pods} | {cost} | {statistics.median(sampler.ages):.1f} s ({max(sampler.ages):.1f} s) |")


if __name__ == "__main__":
    main()
