"""The frame of a part of the red team: a lab, what is wrong with it, and the status."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable

from stand import Stand, add_options, standing
from timed import BenchError

from trainyard.core.errors import TrainyardError


def run_part(name: str, about: str | None, measure: Callable[[Stand], list[str]], well: str, argv: list[str]) -> int:
    """Run a part over a lab of its own, print what is wrong, and return its status.

    :param about: the program's own text; its first line is the help.
    :param well: the sentence for a part that has found nothing wrong.
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
