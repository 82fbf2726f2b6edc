#!/usr/bin/env python3
"""Measure the role containerd against the same with single modules (docs/adr/0005), and print a Markdown table.

    .venv/bin/python tests/bench/modules.py --pairs 5

It needs the lab of inventories/lab as `make lab` leaves it. Both sides run without changes, in turn.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path

import report
from inputs import ROOT
from timed import BenchError, timed

SIDES = ("builtin", "house")
LIMIT = 300
"""Seconds per run."""


def run(side: str, folder: Path, number: int) -> float:
    """Return the seconds of a run without changes.

    :raises BenchError: it failed, or it changed something.
    """
    log = folder / f"{side}-{number}.log"
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {"PATH": programs, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
    playbook = str(Path(__file__).with_name("modules") / f"{side}.yml")
    seconds = timed(["ansible-playbook", "-i", "inventories/lab", playbook], log, LIMIT, env=env)
    if re.search(r"changed=[1-9]", log.read_text(encoding="utf-8")):
        raise BenchError(f"The run changed something; log: {log}")
    return seconds


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=5, help="runs of each side (default: %(default)s)")
    options = parser.parse_args(argv)
    folder = Path(tempfile.mkdtemp(prefix="trainyard-bench-", dir="/var/tmp"))
    try:
        seconds: dict[str, list[float]] = {side: [] for side in SIDES}
        for number in range(options.pairs + 1):
            for side in SIDES if number % 2 else reversed(SIDES):
                seconds[side].append(run(side, folder, number))
    except BenchError as error:
        print(error, file=sys.stderr)
        return 1
    # The first run of each opens the connections.
    builtin, house = (seconds[side][1:] for side in SIDES)
    ratios = [b / a for a, b in zip(builtin, house, strict=True)]
    row = ["nothing to do, three nodes", report.spread(builtin), report.spread(house), report.spread(ratios, "", 2)]
    print(report.table([f"{len(house)} pairs, median (range)", "single modules", "the role", "role / single"], [row]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
