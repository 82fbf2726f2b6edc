"""The evaluator: judges each new checkpoint of the run, while chief and workers continue."""

from __future__ import annotations

import functools
import time
from pathlib import Path

import tensorflow as tf

from engine.evaluate import evaluate
from engine.workload import Model, Workload
from lib.checkpoint import read_model
from lib.errors import ExitCode
from lib.evaluations import Evaluations
from lib.metrics import MetricsLog
from lib.run_folder import Attempt, Checkpoints
from lib.watchdog import Watchdog

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
