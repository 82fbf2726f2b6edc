"""The command line of every workload's `main.py`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from engine.config import Alone, Config, parse_flags
from engine.workload import Workload


def main(config: type[Config], workload: Callable[[Any], Workload]) -> int:
    """Run the role that TF_CONFIG gives this process to its end, and return the exit code.

    :param config: of the workload; its fields are the flags.
    :param workload: makes the workload of such a config. It should import TensorFlow itself, so that a wrong flag does
        not cost the seconds which that takes.
    """
    started = time.time()
    flags = parse_flags(config, program=config.__module__)
    from engine.program import run

    return run(config, workload, flags, started)


def main_alone(config: type[Alone], workload: Callable[[Any], Workload]) -> int:
    """The same for a training whose only process this is."""
    started = time.time()
    flags = parse_flags(config, program=config.__module__)
    from engine.alone import run

    return run(config, workload, flags, started)
