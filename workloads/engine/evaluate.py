"""Held-out evaluation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from engine.workload import Data, Model, ScoreOf

BATCH_SIZE = 500
"""Limits the memory; large enough that the overhead per batch is negligible."""


@dataclass(frozen=True)
class Score:
    """The result for all held-out examples: share of right answers (0 to 1), mean loss, and their number.

    :param more: other figures of the workload, by name.
    """

    accuracy: float
    loss: float
    examples: int
    more: dict[str, float] = field(default_factory=dict)

    @property
    def figures(self) -> dict[str, float]:
        """Return the figures by their names in events."""
        return {"accuracy": self.accuracy, "loss": self.loss, **self.more}


def right_answers(right: np.ndarray, losses: np.ndarray) -> Score:
    """Return the score of a model that reports for each example whether its answer is right."""
    return Score(float(np.mean(right)), float(np.mean(losses)), len(right))


def evaluate(model: Model, data: Data, alive: Callable[[], object], score: ScoreOf | None = None) -> Score:
    """Evaluate the model on all held-out examples.

    :param model: model in this process's memory.
    :param alive: called after each batch.
    :param score: the workload's own score function, if it has one.
    """
    answers, losses = [], []
    for batch in data.held_out(BATCH_SIZE):
        answer, loss = model.judge(*batch)
        answers.append(answer.numpy())
        losses.append(loss.numpy())
        alive()
    return (score or right_answers)(np.concatenate(answers), np.concatenate(losses))
