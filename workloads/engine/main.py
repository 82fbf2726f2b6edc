"""The command line of every workload's `main.py`.

A crash inside TensorFlow writes the Python stacks of all threads to the log (`faulthandler`). Without them,
the log would just end.
"""

from __future__ import annotations

import faulthandler
import time
from collections.abc import Callable
from typing import Any

from engine.config import Alone, Config, parse_flags
from engine.workload import Workload


def main(config: type[Config], workload: Callable[[Any], Workload]) -> int:
    """Run the role of this process, given by TF_CONFIG, to its end, and return the exit code.

    :param config: config class of the workload; its fields are the flags.
    :param workload: creates the workload from such a config. It should import TensorFlow itself, so that a wrong flag
        fails without waiting for that import.
    """
    started = time.time()
    faulthandler.enable()
    flags = parse_flags(config, program=config.__module__)
    from engine.program import run

    return run(config, workload, flags, started)


def main_alone(config: type[Alone], workload: Callable[[Any], Workload]) -> int:
    """Run a training that consists of this process alone, and return the exit code."""
    started = time.time()
    faulthandler.enable()
    flags = parse_flags(config, program=config.__module__)
    from engine.loop.single_process import run

    return run(config, workload, flags, started)
