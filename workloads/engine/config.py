"""The flags common to all workloads. Each flag is described and checked only here, or in the workload that adds it."""

from __future__ import annotations

import argparse
import dataclasses
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

from engine.cluster.devices import ALWAYS, NEVER, WHERE_GIVEN
from engine.errors import InputError
from engine.run.run_folder import AUTO, FRESH

NONE, COSINE = "none", "cosine"


def flag(
    default: object, meaning: str, check: Callable[[Any], bool] = lambda _: True, allowed: str = "", also: str = ""
) -> Any:
    """Return a config field, which is a flag of the program.

    :param meaning: text for the program's help and for its README.
    :param check: returns whether a value is valid; a number that is not finite never is.
    :param allowed: valid values, for the error.
    :param also: another name of the flag.
    """
    metadata = {"meaning": meaning, "check": check, "allowed": allowed, "also": also}
    return dataclasses.field(default=default, metadata=metadata)


def other_default(name: str, default: object, also: str = "") -> Any:
    """Return a flag of `Config` with another default, and optionally a second name."""
    return dataclasses.field(default=default, metadata={**Config.__dataclass_fields__[name].metadata, "also": also})


@dataclass(frozen=True)
class Config:
    """The settings of one run; each workload extends them.

    :raises InputError: a value is invalid.
    """

    train_steps: int = flag(
        200, "global steps to reach, counted over restarts; 0: until stopped", lambda n: n >= 0, "0 or more"
    )
    batch_size: int = flag(20, "examples per step of one worker", lambda n: n >= 1, "1 or more")
    learning_rate: float = flag(0.001, "Adam's step size", lambda x: x > 0, "more than 0")
    learning_rate_decay: str = flag(
        NONE,
        f"{NONE}: constant, {COSINE}: down to 0 at train_steps along half a cosine",
        lambda text: text in (NONE, COSINE),
        f"{NONE} or {COSINE}",
    )
    data_dir: Path = flag(Path("/data"), "the data set, on chief and workers; read only")
    log_dir: Path = flag(
        Path("/logs"), "the run's folder, on the chief: checkpoints, metrics and events by attempt; never emptied"
    )
    attempt: str = flag(
        "first",
        "name of this submission of the run; a restart keeps it",
        lambda text: re.fullmatch(r"[A-Za-z0-9-]{1,40}", text) is not None,
        "up to 40 letters, digits and dashes",
    )
    resume: str = flag(
        AUTO,
        f"{AUTO}: continue from the newest checkpoint, {FRESH}: start over",
        lambda text: text in (AUTO, FRESH),
        f"{AUTO} or {FRESH}",
    )
    checkpoint_every: int = flag(
        200,
        "steps between checkpoints, each followed by an evaluation; 0: only at the end and when stopped",
        lambda n: n >= 0,
        "0 or more",
    )
    report_every: int = flag(20, "steps between progress lines", lambda n: n >= 1, "1 or more")
    stall_timeout: float = flag(
        120.0,
        "seconds without progress after which the chief gives up; also for a single call whose worker hangs",
        lambda s: s >= 1,
        "1 or more",
    )
    start_timeout: float = flag(
        300.0, "seconds that the chief waits for the other tasks at its start", lambda s: s >= 1, "1 or more"
    )
    accuracy_bound: float = flag(
        0.0, "held-out accuracy to reach, else the exit code is 3; 0: none", lambda x: 0 <= x <= 1, "0 to 1"
    )
    patience: int = flag(
        0,
        "evaluations without improvement after which the run ends before train_steps, with its best model; 0: never",
        lambda n: n >= 0,
        "0 or more",
    )
    steps_per_dispatch: int = flag(
        10,
        "maximum steps per call from the chief to a worker; calls of long steps are smaller",
        lambda n: n >= 1,
        "1 or more",
    )
    benchmark_steps: int = flag(
        0,
        "steps to time after the first ten, without evaluations and checkpoints; 0: none",
        lambda n: n >= 0,
        "0 or more",
    )
    seed: int = flag(1, "initial weights and the order of the examples", lambda n: 0 <= n < 2**31, "0 to 2147483647")
    require_gpu: str = flag(
        WHERE_GIVEN,
        "auto: a computing process fails at its start if its pod has GPUs and TensorFlow finds none; true: also "
        "if its pod has none; false: the CPU computes, and the end event reports it",
        lambda text: text.lower() in (ALWAYS, WHERE_GIVEN, NEVER),
        f"{ALWAYS}, {WHERE_GIVEN} or {NEVER}",
    )

    def __post_init__(self) -> None:
        for each in dataclasses.fields(self):
            value = getattr(self, each.name)
            finite = not isinstance(value, float) or math.isfinite(value)
            if not finite or not each.metadata["check"](value):
                raise InputError(f"{each.name} is {value}.", f"Set it to {each.metadata['allowed']}.")
        if self.learning_rate_decay != NONE and not self.train_steps:
            raise InputError(
                f"learning_rate_decay is {self.learning_rate_decay}, and train_steps is 0, so the decay has no end.",
                f"Set train_steps to 1 or more, or learning_rate_decay to {NONE}.",
            )
        if self.patience and not self.checkpoint_every:
            raise InputError(
                f"patience is {self.patience}, and checkpoint_every is 0, so nothing is evaluated before the end.",
                "Set checkpoint_every to 1 or more, or patience to 0.",
            )

    @property
    def decay_steps(self) -> int:
        """Return the steps after which the learning rate is 0; 0 if it is constant."""
        return self.train_steps if self.learning_rate_decay == COSINE else 0


@dataclass(frozen=True)
class Alone(Config):
    """The settings of a run in a single process."""

    require_gpu: str = other_default("require_gpu", ALWAYS)


def parse_flags(config: type[Config], program: str, arguments: list[str] | None = None) -> dict[str, Any]:
    """Parse the command line: one flag per field of `config`, whose docstring is the description in the help.

    Exits with code 2 on an unknown flag or a value of the wrong type.

    :returns: values for `config`, not yet checked.
    """
    parser = argparse.ArgumentParser(
        prog=program,
        description=(config.__doc__ or "").partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    types = get_type_hints(config)
    for each in dataclasses.fields(config):
        meaning = each.metadata["meaning"]
        names = [f"--{name}" for name in (each.name, each.metadata["also"]) if name]
        parser.add_argument(*names, dest=each.name, type=types[each.name], default=each.default, help=meaning)
    return vars(parser.parse_args(arguments))
