"""Plan, then act: the one shape of every state-changing module.

A module reads the observed state, compares it with the desired one and builds a `Plan`. In check mode the plan is
returned as a diff; otherwise the same steps are executed. Both runs share every line up to the first write.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Step:
    """One write.

    :param what: imperative sentence shown to the user, free of secrets.
    :param act: does the write; raises `TrainyardError` when it cannot.
    """

    what: str
    act: Callable[[], object]


@dataclass(frozen=True)
class Plan:
    """What has to be done to bring the observed state to the desired one.

    :param steps: the writes, in order; none means that nothing has to change.
    :param before: observed state as plain data (shown in the diff), free of secrets.
    :param after: desired state in the same shape as `before`.
    :param done: what `execute` has done so far; after an error, what stays done.
    """

    steps: Sequence[Step] = field(default_factory=tuple)
    before: Any = None
    after: Any = None
    done: list[str] = field(default_factory=list, compare=False)

    @property
    def changed(self) -> bool:
        return bool(self.steps)

    def diff(self) -> dict[str, Any]:
        """Ansible's diff: the two states, and the steps as the `prepared` text."""
        return {
            "before": self.before if self.before is not None else {},
            "after": self.after if self.changed and self.after is not None else self.before or {},
            "prepared": "".join(f"{step.what}\n" for step in self.steps),
        }

    def execute(self) -> None:
        for step in self.steps:
            step.act()
            self.done.append(step.what)
