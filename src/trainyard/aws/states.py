"""Waits for resources, as data: which state ends a wait, which is on the way, and that every other one fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..core.waiter import wait_until
from .client import Patience
from .errors import AwsError

State = str | None
"""`LifeCycleState` of EFS; None for what AWS does not show."""


@dataclass(frozen=True)
class Goal:
    """What a state says to somebody who waits.

    :param name: what the resource is to be, for messages.
    :param reached: states that end the wait.
    :param on_the_way: states that the wait goes on in; any other fails.
    """

    name: str
    reached: frozenset[State]
    on_the_way: frozenset[State]


AVAILABLE = Goal("available", frozenset({"available"}), frozenset({None, "creating", "updating"}))
"""What was just made may not be shown for some seconds."""

GONE = Goal("gone", frozenset({None, "deleted"}), frozenset({"creating", "available", "updating", "error", "deleting"}))
"""What was just deleted may be shown for some seconds as it was, and what a run left half made is deleted, too."""

LEAVING = frozenset({"deleting", "deleted"})
"""States of what is as good as not there."""


def settle(look: Callable[[], dict[str, State]], goal: Goal, patience: Patience) -> None:
    """Wait until all of some resources have reached a goal.

    :param look: reads them all, each with its state by its name for messages.
    :raises AwsError: one is in a state that does not lead to the goal.
    :raises WaitError: the time is over; it names what is not there yet.
    """

    def observe() -> dict[str, State]:
        states = look()
        for name, state in states.items():
            if state not in goal.reached | goal.on_the_way:
                raise AwsError(
                    f"{name} is {state}, and will not be {goal.name}.",
                    code="State",
                    remedy="Look at it in AWS's console; what is in the state error has to be deleted and made anew.",
                )
        return {name: state for name, state in states.items() if state not in goal.reached}

    wait_until(
        observe,
        lambda left: not left,
        what=f"AWS to have everything {goal.name}",
        timeout=patience.timeout,
        interval=patience.interval,
        show=lambda left: ", ".join(f"{name} is {state or 'not shown'}" for name, state in sorted(left.items())),
        clock=patience.clock,
    )


def state_of(found: dict[str, Any] | None) -> State:
    """The state in a description of EFS."""
    return found["LifeCycleState"] if found else None
