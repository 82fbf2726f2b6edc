#!/usr/bin/env python3
"""Measure one program as a plain process and as a pod. Writes a table to docs/benchmarks.md.

    .venv/bin/python tests/bench/bare.py [--pairs 3] [--inventory inventories/lab --lab trainyard]

Both run on the same node from the same image, in turn. The bare one is a process in the image's file system: no pod, no
container, no limits. It gets the same number of threads as the pod, and must have the same CPUs.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import page
import report
from stand import Stand, add_options, standing
from timed import BenchError

from trainyard.kube.api import KubeError
from trainyard.trainings.log_events import events, last

FOLDER = Path(__file__).with_name("bare")
NODE = "worker1"
ROOT = "/var/lib/trainyard-bare"
"""Folder on the node while the bare process runs."""
RUN = "bench-bare"
ENTRY = {
    "workload": "alone",
    "run": RUN,
    "code": {"folder": str(FOLDER)},
    "command": "python main.py",
    "node_selector": {"kubernetes.io/hostname": NODE},
}
RATIO = 0.97
HEAD = ["one process, 1,500 steps of a convolutional network", "steps per second, median (range)", "times", "aim"]

Event = Mapping[str, Any]


def in_cluster(stand: Stand) -> list[dict[str, Any]]:
    """Return the events of the program as the only pod of a run."""
    stand.train(ENTRY, resume="fresh")
    kept = stand.record(RUN)
    text = "".join(Path(path).read_text(encoding="utf-8") for path in kept["logs"])
    return whole(events(text))


def as_process(stand: Stand, image: str, threads: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return its events as a process on the node."""
    words = [f"{name}={value}" for name, value in threads.items()]
    program = (FOLDER / "main.py").read_text(encoding="utf-8")
    shell = ("sh", "-c", (FOLDER / "bare.sh").read_text(encoding="utf-8"), "bare.sh")
    return whole(events(stand.on_node(NODE, *shell, image, ROOT, *words, given=program)))


def whole(told: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return all events of the program, if it has ended.

    :raises BenchError: it has not.
    """
    if not last(told, "end"):
        raise BenchError(f"The program did not come to its end: {told[-1:]}.")
    return list(told)


def require_equal(one: Event, other: Event) -> None:
    """Check that both had the same resources.

    :raises BenchError: CPUs, threads or TensorFlow differ, so the two cannot be compared.
    """
    for what in ("cpus", "threads", "tensorflow"):
        if one[what] != other[what]:
            raise BenchError(f"{what} of the two differ: {one[what]} and {other[what]}.")


def verdict(ratios: Sequence[float]) -> bool:
    """Return whether the median reaches the aim, or the range contains 1.0."""
    return statistics.median(ratios) >= RATIO or min(ratios) <= 1.0 <= max(ratios)


def measure(stand: Stand, pairs: int) -> bool:
    """Run both in turn and write the table; return whether the aim was reached."""
    # This run is not counted: it transfers the code to the node, and reports the resources of the pod.
    pod = last(in_cluster(stand), "start")
    image = str(stand.record(RUN)["files"]["image"])
    rates: dict[str, list[float]] = {"bare": [], "cluster": []}
    for number in range(pairs):
        for side in sorted(rates, reverse=bool(number % 2)):
            told = in_cluster(stand) if side == "cluster" else as_process(stand, image, pod["threads"])
            require_equal(pod, last(told, "start"))
            rates[side].append(float(last(told, "end")["steps_per_second"]))
            print(f"bare: pair {number + 1} of {pairs}: {side}: {rates[side][-1]:.2f} steps/s", flush=True)
    ratios = [cluster / bare for bare, cluster in zip(rates["bare"], rates["cluster"], strict=True)]
    met = verdict(ratios)
    rows = [
        ["a bare process of the image, without Kubernetes", report.spread(rates["bare"], ""), str(pairs), ""],
        ["the same in the cluster, one pod", report.spread(rates["cluster"], ""), str(pairs), ""],
        ["in the cluster / bare, pair by pair", report.spread(ratios, "", 3), str(pairs),
         f"at least {RATIO}, or 1.0 within the range" + ("" if met else ", missed")],
    ]  # fmt: skip
    page.write("bare", HEAD, rows)
    stand.forget(RUN)
    return met


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_options(parser)
    parser.add_argument("--pairs", type=int, default=3, help="runs of each (default: %(default)s)")
    options = parser.parse_args(argv)
    try:
        with standing(options) as stand:
            return 0 if measure(stand, options.pairs) else 1
    except (BenchError, KubeError) as error:
        print(f"bare: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
