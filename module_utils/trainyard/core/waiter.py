"""Bounded waits: a condition, an interval, a limit, and the last state seen when the limit is reached."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .clock import CLOCK, Clock
from .errors import WaitError

State = TypeVar("State")


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
    deadline = clock.monotonic() + timeout
    while True:
        state = observe()
        if done(state):
            return state
        if clock.monotonic() + interval > deadline:
            seen = show(state)
            raise WaitError(f"Waited {timeout:.0f} s for {what}; last state: {seen}.", last_state=seen)
        clock.sleep(interval)
