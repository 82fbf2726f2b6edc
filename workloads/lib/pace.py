"""How much work is handed out ahead: by time, so that a chief that is told to stop need not wait long for it."""

from __future__ import annotations

AHEAD_SECONDS = 0.5
"""Work under way per worker. More is time that SIGTERM does not grant; less means calls so small that what a call costs
itself counts (20 ms on two cores, 50 ms on slow ones: with 0.2 s the latter lose a third of their speed)."""
CALLS_PER_WORKER = 3
"""Most calls under way per worker: one that runs, and enough queued that it never waits for the chief."""

_WANTED_CALLS = 2
_WEIGHT = 0.3


class Pace:
    """The size and number of calls that keep every worker busy for `AHEAD_SECONDS`.

    It learns from each call that ends: within the time since it was handed out, all workers together did the steps
    that were under way at that moment (Little's law: work under way = throughput x time). A call's first run, in which
    TensorFlow prepares its graph, makes it start small.

    :param workers: how many there are.
    :param limit: most steps per call.
    """

    def __init__(self, workers: int, limit: int) -> None:
        self._workers, self._limit = workers, limit
        self._steps_per_second = 0.0

    def learn(self, steps: int, seconds: float) -> None:
        """A call ended.

        :param steps: that were under way when it was handed out, its own among them.
        :param seconds: since then.
        """
        seen = steps / max(seconds, 1e-6)
        old = self._steps_per_second
        self._steps_per_second = old + _WEIGHT * (seen - old) if old else seen

    @property
    def steps(self) -> int:
        """Most steps for the next call."""
        return max(1, min(self._limit, int(self._ahead / (_WANTED_CALLS * self._workers))))

    def allows(self, calls: int, steps: int) -> bool:
        """Whether another call may be handed out.

        :param calls: under way now.
        :param steps: of these.
        """
        return calls < self._workers or (steps < self._ahead and calls < CALLS_PER_WORKER * self._workers)

    @property
    def _ahead(self) -> float:
        """Steps that all workers do in the time ahead."""
        return self._steps_per_second * AHEAD_SECONDS
