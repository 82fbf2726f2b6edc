#!/usr/bin/env python3
"""Run a schedule repeatedly on an untouched site, and start it several times at once. Writes to docs/benchmarks.md.

    .venv/bin/python tests/bench/schedule.py [--only runs,starts]

The timer's interval is one second; all other settings are those of production. Thirty runs and the eighty starts take
more than 40 minutes together, so they are two parts of `make proof`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import memory
import page
from mishaps import until
from schedule_judge import REFUSED_SECONDS, files_kept, growth, refused, wrong
from schedule_site import CONTROLLER, WORKER
from schedule_stand import Scheduled, scheduled
from sides import running_pods
from timed import BenchError

from trainyard.kube.api import KubeError

RUNS, STARTS, ROUNDS = 30, 8, 10
FLAT = 0.05
SIZE_BYTES = 50_000_000
TIMER = "trainyard-reprovision.timer"
EVERY_SECOND = "[Timer]\nOnCalendar=\nOnCalendar=*-*-* *:*:*\nRandomizedDelaySec=0\n"
ETCD = """
import urllib.request
text = urllib.request.urlopen("http://127.0.0.1:2381/metrics", timeout=20).read().decode()
print(next(float(line.split()[1]) for line in text.splitlines() if line.startswith("etcd_mvcc_db_total_size_in_use")))
"""
HEAD = ["what", "measured", "aim"]


@dataclass
class Sizes:
    """Bytes used by the nodes and etcd after each run."""

    nodes: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, value: float) -> None:
        self.nodes.setdefault(name, []).append(value)

    def growth(self) -> dict[str, float]:
        return {name: growth(values) for name, values in self.nodes.items()}


def measure(stand: Scheduled, sizes: Sizes) -> None:
    """Add the current sizes of nodes and etcd."""
    groups = memory.groups(stand.lab)
    for node in ("cp1", WORKER):
        ask = ["podman", "inspect", "--format={{.Id}}", f"{stand.lab}-{node}"]
        name = subprocess.run(ask, check=True, capture_output=True, text=True, timeout=60).stdout.strip()
        sizes.add(f"memory of {node}", memory.measure(groups[name])[0])
    sizes.add("etcd", float(stand.on_node("cp1", "python3", "-", given=ETCD)))


def runs(stand: Scheduled) -> bool:
    """Let the timer start thirty runs; return whether there are no faults."""
    first = stand.look()
    known = {each["id"] for each in first["reports"]}
    pods, sizes = running_pods(), Sizes()
    folder = f"/run/systemd/system/{TIMER}.d"
    stand.on_node(CONTROLLER, "mkdir", "-p", folder)
    stand.on_node(CONTROLLER, "tee", f"{folder}/often.conf", given=EVERY_SECOND)
    stand.on_node(CONTROLLER, "sh", "-c", f"systemctl daemon-reload && systemctl restart {TIMER}")
    done: list[dict[str, Any]] = []
    while len(done) < RUNS:
        count = len(done)

        def more(count: int = count) -> list[dict[str, Any]]:
            fresh = [each for each in stand.look()["reports"] if each and each["id"] not in known]
            fresh = [each for each in fresh if each["state"] != "running"]
            return fresh if len(fresh) > count else []

        done = until(f"the end of run {count + 1}", more, 600, pause=3)
        if told := next(filter(None, map(wrong, done)), ""):
            raise BenchError(f"Run {len(done)} of an untouched site: {told}.")
        measure(stand, sizes)
    # Restore the timer's schedule, and wait for the run that has begun meanwhile.
    stand.on_node(CONTROLLER, "rm", "-r", folder)
    stand.on_node(CONTROLLER, "sh", "-c", f"systemctl daemon-reload && systemctl restart {TIMER}")
    until("the end of the last run", lambda: not stand.works(), 600, pause=3)
    last, grown = stand.look(), sizes.growth()
    beside = [each["files"] - files_kept(len(each["reports"])) for each in (first, last)]
    more_files = beside[1] - beside[0]
    converges = sum(each["mode"] == "converge" for each in done)
    seconds = [each["seconds"] for each in done]
    size = f"{last['bytes'] / 1e6:.1f} MB, {more_files} more files than are kept"
    rows = [
        ["runs", f"{len(done)}, {converges} of them converges; median {median(seconds):.0f} s", f"{RUNS} with 0"],
        ["items, changes, restarted pods", f"0, 0, {len(running_pods() ^ pods)}", "0"],
        ["state directory", size, "50 MB, 0"],
        ["processes, sockets, temporary files left", f"{len(last['processes'])}, {len(last['left'])}", "0"],
        *([f"growth: {name}", f"{share:+.1%}", f"{FLAT:.0%}"] for name, share in grown.items()),
    ]
    page.write("schedule", HEAD, rows)
    problems = [
        *(f"{name} has grown by {share:.1%}" for name, share in grown.items() if share > FLAT),
        *(["it runs as a report only"] if converges < RUNS - 5 else []),
        *(["pods were restarted"] if running_pods() != pods else []),
        *([f"the state directory has {size}"] if last["bytes"] > SIZE_BYTES or more_files else []),
        *(f"left: {each}" for each in (*last["left"], *last["processes"], *last["broken"])),
    ]
    for each in problems:
        print(f"schedule: {each}", file=sys.stderr, flush=True)
    return not problems


def starts(stand: Scheduled) -> bool:
    """Start eight runs at the same moment, ten times."""
    units = [f"start-{number}.service" for number in range(STARTS)]
    for unit in units:
        stand.copy(unit)
    waited: list[float] = []
    for _ in range(ROUNDS):
        stand.begin(*units)
        waited += refused([stand.wait(unit) for unit in units])
    last = stand.look()
    told = f"one ran, {STARTS - 1} ended with 4 after {median(waited):.1f} s, {max(waited):.1f} s at most"
    page.write("schedule", HEAD, [[f"{STARTS} starts at once, {ROUNDS} times", told, f"{REFUSED_SECONDS:.0f} s"]])
    left = [*last["left"], *last["processes"], *last["broken"]]
    for each in left:
        print(f"schedule: left: {each}", file=sys.stderr, flush=True)
    return not left


PARTS = {"runs": runs, "starts": starts}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas (default: all)")
    names = parser.parse_args(argv).only.split(",")
    if strange := set(names) - set(PARTS):
        parser.error(f"no such part: {', '.join(strange)}; there are {', '.join(PARTS)}")
    try:
        with scheduled() as stand:
            passed = [PARTS[name](stand) for name in names]
        return 0 if all(passed) else 1
    except (BenchError, KubeError, subprocess.SubprocessError) as error:
        print(f"schedule: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
