"""The workload's own flags; the common flags of a single process are in `engine.config`."""

from __future__ import annotations

from dataclasses import dataclass

import engine.config
from engine.config import flag, other_default


@dataclass(frozen=True)
class Config(engine.config.Alone):
    """MNIST on one GPU: a classifier with one hidden layer."""

    train_steps: int = other_default("train_steps", 500)
    batch_size: int = other_default("batch_size", 100)
    report_every: int = other_default("report_every", 10)
    hidden_units: int = flag(500, "width of the hidden layer", lambda n: 1 <= n <= 65536, "1 to 65536")
