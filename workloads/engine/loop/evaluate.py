"""Held-out evaluation.

The evaluator: judges each new checkpoint of the run, while chief and workers continue.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import tensorflow as tf

from engine.cluster.watchdog import Watchdog
from engine.errors import ExitCode
from engine.run.checkpoint import read_model
from engine.run.metrics import MetricsLog
from engine.run.run_folder import Attempt, Checkpoints, Evaluations
from engine.workload import Data, Model, ScoreOf, Workload

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


_LOOK_SECONDS = 0.5
"""Interval between two checks of the run's folder."""


def follow(workload: Workload, attempt: Attempt, log: MetricsLog, watchdog: Watchdog) -> ExitCode:
    """Judge checkpoints until the chief has given its verdict and the last one is judged.

    A checkpoint that appears while another is judged waits. If a newer one appears, the older is skipped.

    :param attempt: attempt at the run whose folder the config names.
    :raises InputError: a checkpoint belongs to another model.
    :raises VolumeError: the run's folder cannot be written.
    """
    run = workload.config.log_dir
    checkpoints = Checkpoints(run, attempt)
    model = workload.model()
    passed: Path | None = None
    while True:
        watchdog.beat("waiting for a checkpoint")
        # Read before the checkpoints, because the last one exists when the chief has ended.
        ended = attempt.ended
        found = checkpoints.newest()
        if found is not None and found[1] != passed:
            _judge(workload, model, Evaluations(run, checkpoints.since() or 0), log, watchdog, *found)
            passed = found[1]
        elif ended:
            return ExitCode.TRAINED
        else:
            time.sleep(_LOOK_SECONDS)


def _judge(
    workload: Workload,
    model: Model,
    evaluations: Evaluations,
    log: MetricsLog,
    watchdog: Watchdog,
    step: int,
    checkpoint: Path,
) -> None:
    """Judge one checkpoint and keep it if it is the best, unless the chief removes it in the meantime."""
    if step <= evaluations.read().step:
        return
    alive = functools.partial(watchdog.beat, "evaluating", step)
    alive()
    try:
        read_model(model, checkpoint)
        score = evaluate(model, workload.data, alive, workload.score)
        account = evaluations.add(step, score.accuracy, checkpoint)
    except (FileNotFoundError, tf.errors.NotFoundError, tf.errors.DataLossError, tf.errors.OutOfRangeError) as error:
        reason = str(error).splitlines()[0]
        log.emit("passed_over", step=step, path=str(checkpoint), why=reason)
        return
    log.emit("evaluate", step=step, **score.figures, examples=score.examples, best_step=account.best_step)
    log.scalars("eval", step, **score.figures)
