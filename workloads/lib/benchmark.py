"""Measure the speed of a training after its warm-up."""

from __future__ import annotations

from lib.metrics import MetricsLog

WARM_UP_STEPS = 10
"""Steps that are not timed: TensorFlow builds graphs in the first calls, and caches fill."""


class Benchmark:
    """A timer for some steps of this process, which emits one `benchmark` event.

    :param steps: steps to time; 0 disables the timer.
    :param batch_size: examples per step.
    """

    def __init__(self, log: MetricsLog, steps: int, batch_size: int) -> None:
        self._log, self._wanted, self._batch_size = log, steps, batch_size
        self._warm_up = WARM_UP_STEPS
        self._steps, self._seconds = 0, 0.0

    def add(self, steps: int, seconds: float) -> None:
        """Count steps that ended together. Whole calls are counted, so slightly more steps than requested may be timed.

        :param seconds: duration of these steps.
        """
        if not self._wanted:
            return
        if self._warm_up > 0:
            self._warm_up -= steps
            return
        self._steps += steps
        self._seconds += seconds
        if self._steps >= self._wanted:
            speed = self._steps / max(self._seconds, 1e-6)
            self._log.emit(
                "benchmark",
                steps=self._steps,
                seconds=self._seconds,
                steps_per_second=speed,
                examples_per_second=speed * self._batch_size,
            )
            self._wanted = 0
