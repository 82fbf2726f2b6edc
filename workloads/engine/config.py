"""The flags that every workload has. A flag is described and checked here, or in the workload that adds it, only."""

from __future__ import annotations

import argparse
import dataclasses
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

from lib.devices import ALWAYS, NEVER, WHERE_GIVEN
from lib.errors import InputError
from lib.run_folder import AUTO, FRESH

NONE, COSINE = "none", "cosine"


def flag(
    default: object, meaning: str, check: Callable[[Any], bool] = lambda _: True, allowed: str = "", also: str = ""
) -> Any:
    """A field of a config, which is a flag of the program.

    :param meaning: for the program's help and for its README.
    :param check: whether a value can be used; a number that is not finite never can.
    :param allowed: what to set instead, for the error.
    :param also: another name of the flag.
    """
    metadata = {"meaning": meaning, "check": check, "allowed": allowed, "also": also}
    return dataclasses.field(default=default, metadata=metadata)


def other_default(name: str, default: object, also: str = "") -> Any:
    """A flag of `Config` with the default of one workload, and perhaps the name that it has elsewhere."""
    return dataclasses.field(default=default, metadata={**Config.__dataclass_fields__[name].metadata, "also": also})


@dataclass(frozen=True)
class Config:
    """What steers one run; a workload derives its own from it.

    :raises InputError: a value cannot be used.
    """

    train_steps: int = flag(
        200, "global steps to reach, counted over restarts; 0: until stopped", lambda n: n >= 0, "0 or more"
    )
    batch_size: int = flag(20, "examples per step of one worker", lambda n: n >= 1, "1 or more")
    learning_rate: float = flag(0.001, "Adam's step size", lambda x: x > 0, "more than 0")
    learning_rate_decay: str = flag(
        NONE,
        f"{NONE}: the same to the end, {COSINE}: down to 0 at train_steps along half a cosine",
        lambda text: text in (NONE, COSINE),
        f"{NONE} or {COSINE}",
    )
    data_dir: Path = flag(Path("/data"), "the data set, on chief and workers; read only")
    log_dir: Path = flag(
        Path("/logs"), "the run's folder, on the chief: checkpoints, metrics and events by attempt; never emptied"
    )
    attempt: str = flag(
        "first",
        "name of this submission of the run; a restart of the same one has the same",
        lambda text: re.fullmatch(r"[A-Za-z0-9-]{1,40}", text) is not None,
        "up to 40 letters, digits and dashes",
    )
    resume: str = flag(
        AUTO,
        f"{AUTO}: go on from the newest checkpoint, {FRESH}: start over",
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
        300.0, "seconds that the chief waits for the others at its start", lambda s: s >= 1, "1 or more"
    )
    accuracy_bound: float = flag(
        0.0, "held-out accuracy to reach, else the exit code is 3; 0: none", lambda x: 0 <= x <= 1, "0 to 1"
    )
    patience: int = flag(
        0,
        "evaluations without a better accuracy after which the run ends before train_steps, with its best; 0: never",
        lambda n: n >= 0,
        "0 or more",
    )
    steps_per_dispatch: int = flag(
        10,
        "most steps that a worker does per call from the chief; long steps come in smaller calls",
        lambda n: n >= 1,
        "1 or more",
    )
    benchmark_steps: int = flag(
        0,
        "steps to time when the first ten are done, evaluations and checkpoints apart; 0: none",
        lambda n: n >= 0,
        "0 or more",
    )
    seed: int = flag(1, "initial weights and the order of the examples", lambda n: 0 <= n < 2**31, "0 to 2147483647")
    require_gpu: str = flag(
        WHERE_GIVEN,
        "auto: what computes ends at its start where its pod was given GPUs and TensorFlow finds none; true: also "
        "where it was given none; false: the CPU does, and the end says so",
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
                f"learning_rate_decay is {self.learning_rate_decay}, and train_steps is 0, so that it has no end.",
                f"Set train_steps to 1 or more, or learning_rate_decay to {NONE}.",
            )
        if self.patience and not self.checkpoint_every:
            raise InputError(
                f"patience is {self.patience}, and checkpoint_every is 0, so that nothing is evaluated before the end.",
                "Set checkpoint_every to 1 or more, or patience to 0.",
            )

    @property
    def decay_steps(self) -> int:
        """Steps after which the learning rate is 0; 0 where it stays as it is."""
        return self.train_steps if self.learning_rate_decay == COSINE else 0


@dataclass(frozen=True)
class Alone(Config):
    """What steers a run in a single process."""

    require_gpu: str = other_default("require_gpu", ALWAYS)


def parse_flags(config: type[Config], program: str, arguments: list[str] | None = None) -> dict[str, Any]:
    """Read the command line: a flag for each field of `config`, whose docstring begins the help.

    Leaves with exit code 2 on an unknown flag or a value of the wrong type.

    :returns: values for `config`, not checked yet.
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
