"""Entry point: flags and exit code only.

TF_CONFIG=... python -m training.mnist_ps.main --train_steps 2000 --accuracy_bound 0.9
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from pathlib import Path

from training.mnist_ps.config import Config

_HELP = {
    "train_steps": "global steps to reach, 0: until stopped",
    "batch_size": "examples per step of one worker",
    "learning_rate": "Adam's step size",
    "hidden_units": "width of the hidden layer",
    "data_dir": "directory of the idx files, on chief and workers",
    "log_dir": "the run's folder on the chief: checkpoints, and metrics and events by attempt; never emptied",
    "attempt": "name of this submission of the run; a restart of the same one has the same",
    "resume": "auto: go on from the newest checkpoint, fresh: start over",
    "checkpoint_every": "steps between checkpoints, 0: only at the end and when stopped",
    "report_every": "steps between progress lines",
    "stall_timeout": "seconds without progress after which the chief exits with 75",
    "start_timeout": "seconds that the chief waits for ps and workers at its start",
    "accuracy_bound": "held-out accuracy to reach (else exit code 3), 0: none",
    "steps_per_dispatch": "most steps a worker does per call from the chief",
    "seed": "initial weights and order of the examples",
}


def parse_flags(arguments: list[str] | None = None) -> dict[str, object]:
    """Read the command line; leaves with exit code 2 on an unknown flag or a value of the wrong type."""
    parser = argparse.ArgumentParser(
        prog="mnist_ps",
        description="MNIST on parameter servers.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    for field in dataclasses.fields(Config):
        kind = {"int": int, "float": float, "str": str, "Path": Path}[str(field.type)]
        parser.add_argument(f"--{field.name}", type=kind, default=field.default, help=_HELP[field.name])
    return vars(parser.parse_args(arguments))


if __name__ == "__main__":
    started = time.time()
    flags = parse_flags()
    # Imported late: a wrong flag should not cost the seconds that TensorFlow takes to import.
    from training.mnist_ps.program import run

    sys.exit(run(flags, started))
