"""What follows a checkpoint on the chief: its evaluation, and whether the run still gets better."""

from __future__ import annotations

import functools
import time
from contextlib import suppress
from pathlib import Path

from engine.state import State
from lib.errors import StalledError, VolumeError
from lib.metrics import MetricsLog
from lib.preemption import Preemption
from lib.run_folder import RunFolder
from lib.watchdog import Watchdog

_LOOK_SECONDS = 0.2
_EVALUATOR_SECONDS = 10.0
"""For the evaluator to judge the last checkpoint, before its pod goes with the run."""


class ToldToStop(Exception):
    """All steps are saved, and the next chief can do what follows."""


class Judge:
    """Evaluates what is saved, unless there is an evaluator for that, and counts for `patience`.

    :param patience: evaluations without a better accuracy that are too many; 0 for none.
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
        """A checkpoint is there: evaluate it, unless that was done, and see whether it was one too many.

        :param path: without the endings of its files.
        :raises ToldToStop: the process was asked to end, here and in `_accuracy`.
        """
        evaluations = self._folder.evaluations
        if not self._folder.attempt.has_evaluator and evaluations.read().step < step:
            self._accuracy(step, path)
        self.out_of_patience = 0 < self._patience <= evaluations.read().without_gain

    def _accuracy(self, step: int, path: str) -> float:
        """Held-out accuracy at the present step, which is saved. No step may be under way.

        Where there is an evaluator, it keeps the account of what was judged, and draws its curve.
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
        """Step and held-out accuracy of the model that the run ends with, which `State.export` of that step writes: the
        last one, or of a run that ends early the best, of equals the first.

        :param early: whether it ends for want of patience; it has become worse since the best, or no better.
        :raises ToldToStop: the process was asked to end.
        :raises VolumeError: the best one cannot be read.
        """
        last = self._accuracy(step, path)
        self._wait_for_evaluator(step)
        if early:
            evaluations = self._folder.evaluations
            known = evaluations.read()
            # Of the last one the evaluator may not know yet.
            if known.best_accuracy >= last and known.best_step != step:
                self.begin("reading the best checkpoint", step)
                self._state.take(known.best_step, evaluations.best(known))
                return known.best_step, known.best_accuracy
        return step, last

    def begin(self, activity: str, step: int) -> None:
        """Something that follows the last checkpoint begins, or goes on.

        :raises ToldToStop: it could take longer than the time that is left after SIGTERM.
        """
        if self._preemption.requested:
            raise ToldToStop
        self._watchdog.beat(activity, step)

    def _wait_for_evaluator(self, step: int) -> None:
        """The verdict does not hang on it: whatever is wrong with the evaluator, the wait has an end."""
        deadline = time.monotonic() + _EVALUATOR_SECONDS
        with suppress(VolumeError, StalledError):
            while self._folder.attempt.has_evaluator and time.monotonic() < deadline:
                self.begin("waiting for the evaluator", step)
                if self._folder.evaluations.read().step >= step:
                    return
                time.sleep(_LOOK_SECONDS)
