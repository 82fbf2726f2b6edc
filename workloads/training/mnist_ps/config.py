"""The knobs of the training, validated."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

from lib.errors import InputError
from lib.run_folder import AUTO, FRESH


@dataclass(frozen=True)
class Config:
    """Everything that steers one run; `README.md` explains each field.

    :param train_steps: global steps to reach, 0 means until stopped.
    :param batch_size: examples per step of one worker.
    :param log_dir: the run's folder, as `lib.run_folder` describes it.
    :param attempt: name of this submission of the run.
    :param resume: `auto` or `fresh`.
    :param checkpoint_every: steps between checkpoints, 0 means only at the end and when stopped.
    :param report_every: steps between progress lines.
    :param stall_timeout: seconds without progress after which the chief gives up.
    :param start_timeout: seconds that the chief waits for the others at its start.
    :param accuracy_bound: held-out accuracy (0 to 1) that the run must reach, 0 means none.
    :param steps_per_dispatch: upper limit of the steps a worker does per call from the chief.
    """

    train_steps: int = 200
    batch_size: int = 20
    learning_rate: float = 0.001
    hidden_units: int = 100
    data_dir: Path = Path("/data")
    log_dir: Path = Path("/logs")
    attempt: str = "first"
    resume: str = AUTO
    checkpoint_every: int = 200
    report_every: int = 20
    stall_timeout: float = 120.0
    start_timeout: float = 300.0
    accuracy_bound: float = 0.0
    steps_per_dispatch: int = 10
    seed: int = 1

    def __post_init__(self) -> None:
        self._require("train_steps", self.train_steps >= 0, "0 (until stopped) or more")
        self._require("batch_size", 1 <= self.batch_size <= 60000, "1 to 60000")
        self._require("learning_rate", math.isfinite(self.learning_rate) and self.learning_rate > 0, "more than 0")
        self._require("hidden_units", 1 <= self.hidden_units <= 65536, "1 to 65536")
        self._require("attempt", bool(re.fullmatch(r"[A-Za-z0-9-]{1,40}", self.attempt)), "letters, digits and dashes")
        self._require("resume", self.resume in (AUTO, FRESH), f"{AUTO} or {FRESH}")
        self._require("checkpoint_every", self.checkpoint_every >= 0, "0 (only at the end) or more")
        self._require("report_every", self.report_every >= 1, "1 or more")
        for name in ("stall_timeout", "start_timeout"):
            seconds = getattr(self, name)
            self._require(name, math.isfinite(seconds) and seconds >= 1, "1 second or more")
        self._require("accuracy_bound", 0 <= self.accuracy_bound <= 1, "0 (none) to 1")
        self._require("steps_per_dispatch", self.steps_per_dispatch >= 1, "1 or more")
        self._require("seed", 0 <= self.seed < 2**31, "0 to 2147483647")

    def _require(self, name: str, condition: bool, allowed: str) -> None:
        if not condition:
            raise InputError(f"{name} is {getattr(self, name)}.", f"Set it to {allowed}.")
