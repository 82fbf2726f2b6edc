"""Progress lines of a training: mean loss and speed since the last one."""

from __future__ import annotations

import time

from lib.metrics import MetricsLog


class Progress:
    """A reporter that writes a line for each multiple of `every` steps.

    :param every: steps between two lines.
    :param total: steps to reach, 0 for no end.
    :param start: steps done before.
    """

    def __init__(self, log: MetricsLog, every: int, total: int, start: int) -> None:
        self._log, self._every, self._total = log, every, total
        self._reported, self._time = start, time.monotonic()
        self._loss, self._steps = 0.0, 0

    def add(self, step: int, loss: float, steps: int) -> None:
        """Count one call that has ended.

        :param step: total steps so far.
        :param loss: sum of the losses of the call's steps.
        :param steps: number of steps of the call.
        """
        self._loss += loss
        self._steps += steps
        if step // self._every == self._reported // self._every and step != self._total:
            return
        now = time.monotonic()
        speed = (step - self._reported) / max(now - self._time, 1e-6)
        mean = self._loss / self._steps if self._steps else float("nan")
        self._log.emit("step", step=step, steps_total=self._total, loss=mean, steps_per_second=speed)
        self._log.scalars("train", step, loss=mean, steps_per_second=speed)
        self._reported, self._time = step, now
        self._loss, self._steps = 0.0, 0
