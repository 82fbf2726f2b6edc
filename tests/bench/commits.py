#!/usr/bin/env python3
"""Measure site.yml of an earlier commit and of this checkout, in turn. Writes a table to docs/benchmarks.md.

    .venv/bin/python tests/bench/commits.py 34a5b7a --pairs 5

The requirements are those of compare.py. The earlier commit is checked out separately, and runs with the Python
environment of this one. Both create the lab `trainyard-bench`, one after the other. The order alternates between pairs.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import inputs
import page
import report
from compare import check_machine, say, stop
from sides import Result, Site
from timed import BenchError


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("commit", help="the earlier commit")
    parser.add_argument("--pairs", type=int, default=5, help="runs of each side (default: %(default)s)")
    parser.add_argument("--logs", type=Path, help="new folder for all logs (default: one below /var/tmp)")
    options = parser.parse_args(argv)
    if options.pairs < 1:
        parser.error("--pairs must be at least 1")
    return options


def side(folder: Path, root: Path, name: str) -> Site:
    """Return a side with its bundle complete."""
    folder.mkdir()
    made = Site(folder, root, name)
    say(f"completing the bundle of {name}")
    made.prepare()
    # Run the program of that commit, because images and manifests may differ.
    subprocess.run([sys.executable, root / "tests/bench/inputs.py", folder / "inputs"], cwd=root, check=True)
    return made


def measure(old: Site, new: Site, pairs: int) -> dict[str, list[Result]]:
    """Return the results by side, in the order of the runs."""
    results: dict[str, list[Result]] = {old.name: [], new.name: []}
    new.down()
    for number in range(1, pairs + 1):
        for site in (old, new) if number % 2 else (new, old):
            try:
                result = site.run(number, site.folder / "inputs")
            finally:
                site.down()
            results[site.name].append(result)
            say(f"{site.name} {number} of {pairs}: {result.seconds:.1f} s, second {result.second:.1f} s")
    return results


RATIO = "1.0, or 1.0 within the range"
LATER = "0.9, and at most 2 s longer"


def rows(results: dict[str, list[Result]]) -> list[list[str]]:
    """Return medians and ranges of both sides, and of the ratios of pairs."""
    old, new = results.values()

    def row(what: str, value: Callable[[Result], float], aim: str = "") -> list[str]:
        ratios = [value(b) / value(a) for a, b in zip(old, new, strict=True)]
        values: Sequence[Sequence[float]] = [[value(result) for result in each] for each in (old, new)]
        return [what, *map(report.spread, values), report.spread(ratios, "", 2), aim]

    return [
        row("no lab to a passed training", lambda result: result.seconds, RATIO),
        row("second run, nothing changed", lambda result: result.second, LATER),
        row("2,000 steps in the first run, by the training's own clock", lambda result: result.training, RATIO),
        row("200 steps with the seed's knobs, apply to completion", lambda result: result.seed, RATIO),
    ]


def main(argv: list[str]) -> int:
    options = parse(argv)
    signal.signal(signal.SIGTERM, stop)
    folder = options.logs or Path(tempfile.mkdtemp(prefix="trainyard-bench-", dir="/var/tmp"))
    folder.mkdir(parents=True, exist_ok=True)
    earlier = folder / "earlier"
    try:
        check_machine()
        subprocess.run(["git", "worktree", "add", "--detach", earlier, options.commit], cwd=inputs.ROOT, check=True)
        old = side(folder / "old", earlier, options.commit)
        now = ["git", "rev-parse", "--short", "HEAD"]
        name = subprocess.run(now, cwd=inputs.ROOT, check=True, capture_output=True, text=True).stdout.strip()
        new = side(folder / "new", inputs.ROOT, name)
        head = [f"{options.pairs} pairs, median (range)", old.name, new.name, "new / old", "aim"]
        page.write("commits", head, rows(measure(old, new, options.pairs)))
    except (BenchError, subprocess.CalledProcessError) as error:
        print(f"{error}\nlogs: {folder}", file=sys.stderr)
        return 1
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", earlier], cwd=inputs.ROOT, check=False)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
