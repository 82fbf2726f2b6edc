"""The workload's own flags; the common flags are in `engine.config`."""

from __future__ import annotations

from dataclasses import dataclass

import engine.config
from engine.config import flag


@dataclass(frozen=True)
class Config(engine.config.Config):
    """MNIST on parameter servers: a classifier with one hidden layer."""

    hidden_units: int = flag(100, "width of the hidden layer", lambda n: 1 <= n <= 65536, "1 to 65536")
