#!/usr/bin/env python3
"""Measure site.yml against the same provisioning by hand, in turn, and write the result to docs/benchmarks.md.

    .venv/bin/python tests/bench/compare.py --pairs 3

It needs root, skopeo and a machine without other load: no other lab, no build. Each side creates its own lab
(`trainyard-bench` on 10.87.0.0/24, `byhand` on 10.83.0.0/24). They are removed before, between and after the runs; the
removal is not timed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

import inputs
import report
from sides import Hand, Result, Site
from timed import BenchError


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=3, help="runs of each side (default: %(default)s)")
    parser.add_argument("--only", choices=["site", "hand"], help="run only one side, for its development")
    parser.add_argument(
        "--output", type=Path, default=inputs.ROOT / "docs/benchmarks.md", help="document to write into"
    )
    parser.add_argument("--logs", type=Path, help="new folder for all logs (default: one below /var/tmp)")
    parser.add_argument("--results", type=Path, help="results.json of an earlier run: only write the document")
    options = parser.parse_args(argv)
    if options.pairs < 1:
        parser.error("--pairs must be at least 1")
    return options


def check_machine() -> None:
    if os.geteuid() != 0:
        raise BenchError("needs root: it makes system containers")
    if not shutil.which("skopeo"):
        raise BenchError("skopeo is missing: apt-get install skopeo")
    others = subprocess.run(["podman", "ps", "--quiet"], capture_output=True, text=True, check=False, timeout=60)
    running = len(others.stdout.split())
    load = os.getloadavg()[0]
    if running or load > 1:
        say(f"this machine is not idle ({running} other containers, load {load:.1f}): times will be too long")


def say(text: str) -> None:
    print(f"compare: {text}", flush=True)


def measure(options: argparse.Namespace, folder: Path, results: list[Result]) -> None:
    """Run everything; each result is appended as soon as it is available."""
    site, hand = Site(folder), Hand(folder)
    sides = [side for name, side in (("site", site), ("hand", hand)) if options.only in (None, name)]
    say("completing the bundle")
    site.prepare()
    inputs.write(folder / "inputs")
    try:
        for side in sides:
            side.down()
        for number in range(1, options.pairs + 1):
            for side in sides:
                result = side.run(number, folder / "inputs")
                results.append(result)
                more = f", second run {result.second:.1f} s, seed {result.seed:.1f} s" if result.second else ""
                say(f"{side.name} {number} of {options.pairs}: {result.seconds:.1f} s{more}")
                side.down()
    finally:
        (folder / "results.json").write_text(
            json.dumps([asdict(result) for result in results], indent=2), encoding="utf-8"
        )
        for side in sides:
            remove(side)


def remove(side: Site | Hand) -> None:
    """Remove a lab after the last run, whether or not that succeeded."""
    try:
        side.down()
    except BenchError as error:
        say(f"the lab of {side.name} may be left: {error}")


def stop(number: int, _: object) -> NoReturn:
    raise BenchError(f"ended by signal {number}")


def main(argv: list[str]) -> int:
    options = parse(argv)
    if options.results:
        report.write(options.output, report.load(options.results))
        return 0
    # Check that the result can be written before measuring for an hour.
    report.read(options.output)
    signal.signal(signal.SIGTERM, stop)
    folder = options.logs or Path(tempfile.mkdtemp(prefix="trainyard-bench-", dir="/var/tmp"))
    folder.mkdir(parents=True, exist_ok=True)
    say(f"logs are in {folder}")
    results: list[Result] = []
    try:
        check_machine()
        measure(options, folder, results)
        report.write(options.output, results)
    except (BenchError, KeyboardInterrupt) as error:
        say(f"failed: {error or 'interrupted'}; logs are in {folder}")
        return 1
    say(f"written to {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
