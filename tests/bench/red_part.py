"""The common frame of the red team's parts: a lab, the found faults, and the exit status."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable

from stand import Stand, add_options, standing
from timed import BenchError

from trainyard.core.errors import TrainyardError


def run_part(name: str, about: str | None, measure: Callable[[Stand], list[str]], well: str, argv: list[str]) -> int:
    """Run a part on a lab, print the faults, and return its exit status.

    :param about: the program's docstring; its first line is the help.
    :param well: the sentence for a part without faults.
    """
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    add_options(parser)
    try:
        with standing(parser.parse_args(argv)) as stand:
            wrong = measure(stand)
    except (BenchError, TrainyardError, OSError, subprocess.SubprocessError) as error:
        wrong = [str(error)]
    print("\n".join([f"{name}:", *wrong]) if wrong else f"{name}: {well}", file=sys.stderr)
    return 1 if wrong else 0
