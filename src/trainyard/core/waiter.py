"""Bounded waits: a condition, an interval, a limit, and the last state seen when the limit is reached."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from .clock import CLOCK, Clock
from .errors import WaitError

State = TypeVar("State")
T = TypeVar("T")
Pauses = Generator[float, None, T]
"""Work that gives the seconds of each pause that it needs, and returns its result: the caller waits as it can."""


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
    """Observe until the state is the wanted one, and return it.

    :param observe: reads the state; its own errors end the wait.
    :param done: true when the wait is over.
    :param what: the awaited condition, for the error ("the API server to answer").
    :param timeout: limit in seconds; the state is observed at least once.
    :param interval: seconds between two observations.
    :param show: what the error says of the last state; never secrets, and names rather than whole objects.
    :raises WaitError: the limit was reached; `facts['last_state']` is the last state as `show` gave it.
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
    """The same without sleeping, as pauses.

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
    """The result of work with pauses, by sleeping through them."""
    while True:
        try:
            seconds = next(work)
        except StopIteration as end:
            result: T = end.value
            return result
        clock.sleep(seconds)


class Waits:
    """An act of a step that waits. Called, it sleeps; a caller with an event loop takes the pauses instead.

    :param work: begins it.
    """

    def __init__(self, work: Callable[[], Pauses[Any]], clock: Clock = CLOCK) -> None:
        self.work, self._clock = work, clock

    def __call__(self) -> Any:
        return slept(self.work(), self._clock)
