"""Held-out evaluation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from engine.workload import Data, Model

BATCH_SIZE = 500
"""Bounds the memory; large enough that a batch's own cost does not count."""


@dataclass(frozen=True)
class Score:
    """Of all held-out examples: share of right answers (0 to 1), mean loss, and how many there are."""

    accuracy: float
    loss: float
    examples: int


def evaluate(model: Model, data: Data, alive: Callable[[], object]) -> Score:
    """Judge the model on all held-out examples.

    :param model: in this process's memory.
    :param alive: called after each batch.
    """
    right, losses = [], []
    for batch in data.held_out(BATCH_SIZE):
        hits, loss = model.judge(*batch)
        right.append(hits.numpy())
        losses.append(loss.numpy())
        alive()
    hits = np.concatenate(right)
    return Score(float(np.mean(hits)), float(np.mean(np.concatenate(losses))), len(hits))
