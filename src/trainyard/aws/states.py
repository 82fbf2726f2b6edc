"""Waits for resources, as data: the states that end a wait and those that continue it; all others are failures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..core.waiter import wait_until
from .client import Patience
from .errors import AwsError

State = str | None
"""`LifeCycleState` of EFS; None for a resource that AWS does not list."""


@dataclass(frozen=True)
class Goal:
    """The target of a wait.

    :param name: the target state, for messages.
    :param reached: states that end the wait.
    :param on_the_way: states in which the wait continues; any other state fails.
    """

    name: str
    reached: frozenset[State]
    on_the_way: frozenset[State]


AVAILABLE = Goal("available", frozenset({"available"}), frozenset({None, "creating", "updating"}))
"""A new resource may not be listed for some seconds, hence None."""

GONE = Goal("gone", frozenset({None, "deleted"}), frozenset({"creating", "available", "updating", "error", "deleting"}))
"""A deleted resource may be listed with its old state for some seconds. Incompletely created ones are deleted, too."""

LEAVING = frozenset({"deleting", "deleted"})
"""States that are treated as absent."""


def settle(look: Callable[[], dict[str, State]], goal: Goal, patience: Patience) -> None:
    """Wait until all given resources have reached a goal.

    :param look: reads all of them; returns name for messages -> state.
    :raises AwsError: one is in a state that does not lead to the goal.
    :raises WaitError: the timeout was reached; the message lists the resources that have not reached the goal.
    """

    def observe() -> dict[str, State]:
        states = look()
        for name, state in states.items():
            if state not in goal.reached | goal.on_the_way:
                raise AwsError(
                    f"{name} is {state}, and will not become {goal.name}.",
                    code="State",
                    remedy="Check it in the AWS console. If its state is error, delete it and create it again.",
                )
        return {name: state for name, state in states.items() if state not in goal.reached}

    wait_until(
        observe,
        lambda left: not left,
        what=f"all AWS resources of this step to be {goal.name}",
        timeout=patience.timeout,
        interval=patience.interval,
        show=lambda left: ", ".join(f"{name} is {state or 'not listed'}" for name, state in sorted(left.items())),
        clock=patience.clock,
    )


def state_of(found: dict[str, Any] | None) -> State:
    """Return the state from a description of EFS."""
    return found["LifeCycleState"] if found else None
