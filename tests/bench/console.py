#!/usr/bin/env python3
"""Use the console of a lab in a real browser, and measure it. Writes tables to docs/benchmarks.md.

.venv/bin/python tests/bench/console.py [--only live,watched,cases] [--inventory inventories/lab --lab trainyard]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import page
from console_cases import CASES
from console_measures import AIMS, first_page, live, watched
from console_memory import memory
from console_stand import Visit, visiting
from playwright.sync_api import Error as BrowserError
from stand import add_options, standing
from timed import BenchError

from trainyard.kube.api import KubeError

HEAD = ["what", "median (range)", "times", "aim"]
PARTS: dict[str, Callable[[Visit], Mapping[str, list[float]]]] = {
    "live": live,
    "first_page": first_page,
    # Measured before many runs have left their files in the lab's cache.
    "memory": memory,
    "watched": watched,
}


def measure(visit: Visit, names: Sequence[str]) -> bool:
    """Run the parts and write their rows; return whether all ran and reached their aims."""
    good = True
    for name in names:
        try:
            if name != "cases":
                for words, values in PARTS[name](visit).items():
                    page.write("console_lab", HEAD, [AIMS[words].row(words, values)])
                    good &= AIMS[words].met(values)
        except (BenchError, KubeError, BrowserError, AssertionError) as error:
            print(f"console: {name} failed: {error}", file=sys.stderr, flush=True)
            good = False
    # Run the cases even if a measure failed.
    used = use(visit) if "cases" in names else True
    return good and used


def use(visit: Visit) -> bool:
    """Run the cases; each successful one writes a row."""
    good = True
    for name, case in CASES.items():
        try:
            page.write("console_cases", ["what people do", "what came of it"], [[name, case(visit)]])
        except (BenchError, KubeError, BrowserError, AssertionError) as error:
            print(f"console: {name} failed: {error}", file=sys.stderr, flush=True)
            good = False
    return good


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_options(parser)
    known = [*PARTS, "cases"]
    parser.add_argument("--only", default=",".join(known), help="parts, with commas (default: all)")
    options = parser.parse_args(argv)
    names = options.only.split(",")
    if strange := set(names) - set(known):
        parser.error(f"no such part: {', '.join(strange)}; there are {', '.join(known)}")
    try:
        with standing(options) as stand, tempfile.TemporaryDirectory() as home, visiting(stand, Path(home)) as visit:
            return 0 if measure(visit, names) else 1
    except BenchError as error:
        print(f"console: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
