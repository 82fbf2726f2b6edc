"""How long a run may take to start, in every attempt, and altogether."""

from __future__ import annotations


class Bounds:
    """The limits of a run, asked at every look. Each attempt's own `timeout` is kept by the cluster, also when nobody
    looks.

    :param start: seconds within which all pods must run, and again after each restart of the set.
    :param total: seconds from the submission to the end, 0 for no limit.
    :param now: seconds on a clock that only goes forward.
    :param age: seconds since the submission, of a run that somebody else has submitted.
    """

    def __init__(self, start: int, total: int, now: float, age: float = 0.0) -> None:
        self._start, self._total, self._begin = start, total, now - age
        self._waiting_since: float | None = now
        self._restarts = 0
        self._step: int | None = None

    def broken(self, now: float, *, all_run: bool, restarts: int, step: int | None) -> str:
        """Why the run has to be given up, or nothing.

        A pod that does not start counts only while no step is made: a worker that finds no place must not end a run
        that goes on without it.

        :param all_run: whether every pod of the run has started.
        :param restarts: of the whole set so far.
        :param step: the chief's last step, None before the first.
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
