"""Limit the work handed out ahead by time, so that a chief that receives SIGTERM need not wait long for it."""

from __future__ import annotations

AHEAD_SECONDS = 0.5
"""Pending work per worker. More would exceed the time that SIGTERM grants. Less makes calls so small that the overhead
per call matters (20 ms on two cores, 50 ms on slow ones: with 0.2 s the latter lose a third of their speed)."""
CALLS_PER_WORKER = 3
"""Maximum pending calls per worker: one running, and enough queued that it never waits for the chief."""

_WANTED_CALLS = 2
_WEIGHT = 0.3


class Pace:
    """The size and number of calls that keep every worker busy for `AHEAD_SECONDS`.

    It learns from each call that ends: since that call was handed out, all workers together did the steps that were
    pending at that moment (Little's law: pending work = throughput x time). In its first run of a call TensorFlow
    prepares its graph, so the pace starts small.

    :param workers: number of workers.
    :param limit: maximum steps per call.
    """

    def __init__(self, workers: int, limit: int) -> None:
        self._workers, self._limit = workers, limit
        self._steps_per_second = 0.0

    def learn(self, steps: int, seconds: float) -> None:
        """Record a call that ended.

        :param steps: steps that were pending when it was handed out, including its own.
        :param seconds: time since then.
        """
        seen = steps / max(seconds, 1e-6)
        old = self._steps_per_second
        self._steps_per_second = old + _WEIGHT * (seen - old) if old else seen

    @property
    def steps(self) -> int:
        """Return the maximum number of steps of the next call."""
        return max(1, min(self._limit, int(self._ahead / (_WANTED_CALLS * self._workers))))

    def allows(self, calls: int, steps: int) -> bool:
        """Return whether another call may be handed out.

        :param calls: pending calls.
        :param steps: their steps.
        """
        return calls < self._workers or (steps < self._ahead and calls < CALLS_PER_WORKER * self._workers)

    @property
    def _ahead(self) -> float:
        """Return the number of steps that all workers do in `AHEAD_SECONDS`."""
        return self._steps_per_second * AHEAD_SECONDS
