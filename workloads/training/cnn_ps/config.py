"""The workload's own flags and defaults; the common flags are in `engine.config`."""

from __future__ import annotations

from dataclasses import dataclass

import engine.config
from engine.config import COSINE, flag, other_default


@dataclass(frozen=True)
class Config(engine.config.Config):
    """MNIST on parameter servers: a convolutional network whose large variables are split over all of them."""

    train_steps: int = other_default("train_steps", 600)
    batch_size: int = other_default("batch_size", 64)
    learning_rate_decay: str = other_default("learning_rate_decay", COSINE)
    dense_units: int = flag(500, "width of the dense layer", lambda n: 1 <= n <= 65536, "1 to 65536")
