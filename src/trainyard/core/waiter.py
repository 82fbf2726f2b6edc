"""Bounded waits: a condition, an interval, a timeout, and the last observed state when the timeout is reached.

All waits use one clock. Tests replace it with one that advances by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from .errors import WaitError


class Clock:
    """The machine's clock."""

    def monotonic(self) -> float:
        """Return monotonic seconds since an arbitrary point."""
        return time.monotonic()

    def time(self) -> float:
        """Return the seconds since the epoch."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


CLOCK = Clock()


State = TypeVar("State")
T = TypeVar("T")
Pauses = Generator[float, None, T]
"""A generator that yields the seconds of each pause and returns its result. The caller decides how to wait."""


def wait_until(
    observe: Callable[[], State],
    done: Callable[[State], bool],
    *,
    what: str,
    timeout: float,
    interval: float = 1.0,
    show: Callable[[State], str] = str,
    clock: Clock = CLOCK,
) -> State:
    """Observe until the state satisfies the condition, and return it.

    :param observe: reads the state; its exceptions end the wait.
    :param done: the condition.
    :param what: the awaited condition, for the error ("the API server to answer").
    :param timeout: limit in seconds; the state is observed at least once.
    :param interval: seconds between two observations.
    :param show: formats the last state for the error; never secrets, and names rather than whole objects.
    :raises WaitError: the limit was reached; `facts['last_state']` is the last state as formatted by `show`.
    """
    return slept(
        pausing_until(observe, done, what=what, timeout=timeout, interval=interval, show=show, clock=clock), clock
    )


def pausing_until(
    observe: Callable[[], State],
    done: Callable[[State], bool],
    *,
    what: str,
    timeout: float,
    interval: float = 1.0,
    show: Callable[[State], str] = str,
    clock: Clock = CLOCK,
) -> Pauses[State]:
    """Do the same as `wait_until`, but yield the pauses instead of sleeping.

    :raises WaitError: as `wait_until`.
    """
    deadline = clock.monotonic() + timeout
    while True:
        state = observe()
        if done(state):
            return state
        if clock.monotonic() + interval > deadline:
            seen = show(state)
            raise WaitError(f"Waited {timeout:.0f} s for {what}; last state: {seen}.", last_state=seen)
        yield interval


def slept(work: Pauses[T], clock: Clock = CLOCK) -> T:
    """Sleep through the pauses and return the result."""
    while True:
        try:
            seconds = next(work)
        except StopIteration as end:
            result: T = end.value
            return result
        clock.sleep(seconds)


class Waits:
    """The act of a step that waits. Calling it sleeps; a caller with an event loop iterates over the pauses instead.

    :param work: starts the work and returns its pauses.
    """

    def __init__(self, work: Callable[[], Pauses[Any]], clock: Clock = CLOCK) -> None:
        self.work, self._clock = work, clock

    def __call__(self) -> Any:
        return slept(self.work(), self._clock)
