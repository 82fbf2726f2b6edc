#!/usr/bin/env python3
"""Write the output of input_rate/main.py for a folder, from standard input, to the table of docs/benchmarks.md.

python main.py FOLDER 3 | .venv/bin/python tests/bench/input_rate.py "NFS 4.1"
"""

from __future__ import annotations

import sys
from pathlib import Path

import page
import report
from timed import BenchError

from trainyard.trainings.log_events import events

PROGRAM = Path(__file__).with_name("input_rate")
HEAD = ["256 MiB in", "written, median (range)", "read, median (range)", "times"]


def row(where: str, text: str) -> list[str]:
    """Return the line of one folder.

    :param text: output of the program.
    :raises BenchError: it has no rates.
    """
    found = [event for event in events(text) if event["event"] == "rate"]
    if not found:
        raise BenchError(f"Nothing was measured in {where}: {text.strip()[-500:]}")
    rates = [report.spread([float(event[name]) for event in found], " MB/s", 0) for name in ("written", "read")]
    return [where, *rates, str(len(found))]


def main(argv: list[str]) -> int:
    try:
        page.write("input_rate", HEAD, [row(argv[0], sys.stdin.read())])
    except BenchError as error:
        print(f"input_rate: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
