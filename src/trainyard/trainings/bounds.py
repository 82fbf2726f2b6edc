"""Time limits of a run: for the start of every attempt, and in total."""

from __future__ import annotations


class Bounds:
    """The time limits that a follower checks. The cluster itself enforces `timeout` of each attempt.

    :param start: seconds within which all pods must run, and again after each restart of the set.
    :param total: seconds from submission to end; 0 for no limit.
    :param now: seconds on a monotonic clock.
    :param age: seconds since the submission, for a run that was submitted earlier.
    """

    def __init__(self, start: int, total: int, now: float, age: float = 0.0) -> None:
        self._start, self._total, self._begin = start, total, now - age
        self._waiting_since: float | None = now
        self._restarts = 0
        self._step: int | None = None

    def broken(self, now: float, *, all_run: bool, restarts: int, step: int | None) -> str:
        """Return why the run must be given up; empty if no limit is exceeded.

        A pod that does not start counts only while the run makes no steps. An unschedulable worker must not end a run
        that makes progress without it.

        :param now: seconds on the same clock as at the start.
        :param all_run: whether every pod of the run has started.
        :param restarts: number of restarts of the whole set so far.
        :param step: the chief's last step; None before the first.
        """
        if self._total and now - self._begin > self._total:
            return f"it did not end within total_timeout, {self._total} s"
        if restarts != self._restarts or step != self._step or self._waiting_since is None:
            self._waiting_since = now
        self._restarts, self._step = restarts, step
        if all_run:
            self._waiting_since = None
            return ""
        if now - self._waiting_since > self._start:
            return f"not all pods ran within start_timeout, {self._start} s"
        return ""
