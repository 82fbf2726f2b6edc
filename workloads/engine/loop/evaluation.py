"""The chief's work after a checkpoint: its evaluation, and the check for further improvement."""

from __future__ import annotations

import functools
import time
from contextlib import suppress
from pathlib import Path

from engine.cluster.preemption import Preemption
from engine.cluster.watchdog import Watchdog
from engine.errors import StalledError, VolumeError
from engine.loop.state import State
from engine.run.metrics import MetricsLog
from engine.run.run_folder import RunFolder

_LOOK_SECONDS = 0.2
_EVALUATOR_SECONDS = 10.0
"""Time for the evaluator to judge the last checkpoint, before its pod is deleted with the run."""


class ToldToStop(Exception):
    """The process received a request to end. All steps are saved, and the next chief can do the rest."""


class Judge:
    """The evaluation of saved checkpoints, unless an evaluator does it, and the count for `patience`.

    :param patience: evaluations without a better accuracy after which the run ends; 0 for none.
    """

    def __init__(
        self,
        patience: int,
        state: State,
        folder: RunFolder,
        log: MetricsLog,
        watchdog: Watchdog,
        preemption: Preemption,
    ) -> None:
        self._patience, self._state, self._folder = patience, state, folder
        self._log, self._watchdog, self._preemption = log, watchdog, preemption
        self._evaluated: tuple[int, float] | None = None
        self.out_of_patience = False

    def look(self, step: int, path: str) -> None:
        """Evaluate a new checkpoint, unless that was done, and check whether the patience is exhausted.

        :param path: its path without file extensions.
        :raises ToldToStop: the process was asked to end, here and in `_accuracy`.
        """
        evaluations = self._folder.evaluations
        if not self._folder.attempt.has_evaluator and evaluations.read().step < step:
            self._accuracy(step, path)
        self.out_of_patience = 0 < self._patience <= evaluations.read().without_gain

    def _accuracy(self, step: int, path: str) -> float:
        """Return the held-out accuracy at the current step, which is saved. No step may be pending.

        If there is an evaluator, it records the evaluation and plots the curve.
        """
        if self._evaluated is None or self._evaluated[0] != step:
            alive = functools.partial(self.begin, "evaluating", step)
            alive()
            self._log.emit("evaluating", step=step)
            score = self._state.score(step, alive)
            self._evaluated = (step, score.accuracy)
            self._log.emit("evaluate", step=step, **score.figures, examples=score.examples)
            if not self._folder.attempt.has_evaluator:
                self._folder.evaluations.add(step, score.accuracy, Path(path))
                self._log.scalars("eval", step, **score.figures)
        return self._evaluated[1]

    def result(self, step: int, path: str, *, early: bool) -> tuple[int, float]:
        """Return step and held-out accuracy of the final model, which `State.export` of that step writes.

        It is the last one. If the run ends early, it is the best; of equally good ones the first.

        :param early: whether the run ends because its patience is exhausted; it has not improved since the best.
        :raises ToldToStop: the process was asked to end.
        :raises VolumeError: the best one cannot be read.
        """
        last = self._accuracy(step, path)
        self._wait_for_evaluator(step)
        if early:
            evaluations = self._folder.evaluations
            known = evaluations.read()
            # The evaluator may not have judged the last one yet.
            if known.best_accuracy >= last and known.best_step != step:
                self.begin("reading the best checkpoint", step)
                self._state.take(known.best_step, evaluations.best(known))
                return known.best_step, known.best_accuracy
        return step, last

    def begin(self, activity: str, step: int) -> None:
        """Begin or continue an activity that follows the last checkpoint.

        :raises ToldToStop: it could take longer than the time left after SIGTERM.
        """
        if self._preemption.requested:
            raise ToldToStop
        self._watchdog.beat(activity, step)

    def _wait_for_evaluator(self, step: int) -> None:
        """Wait a limited time: the verdict does not depend on the evaluator, even if that fails."""
        deadline = time.monotonic() + _EVALUATOR_SECONDS
        with suppress(VolumeError, StalledError):
            while self._folder.attempt.has_evaluator and time.monotonic() < deadline:
                self.begin("waiting for the evaluator", step)
                if self._folder.evaluations.read().step >= step:
                    return
                time.sleep(_LOOK_SECONDS)
