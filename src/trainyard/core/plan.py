"""Plan, then act: the structure of all state-changing modules.

A module reads the observed state, compares it with the desired one and builds a `Plan`. In check mode the plan is
returned as a diff; otherwise the same steps are executed. Both modes share all code up to the first write.

For drift reports, a plan names its differences as data: the key of a state, or the `Change` of a step. The sentences
of steps are for users only; no code parses them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

MISSING = "missing"
"""Value of an object that does not exist."""


@dataclass(frozen=True)
class Change:
    """One difference between the observed and the desired state, without secrets.

    :param subject: the object that differs: a path, a unit, `KIND NAMESPACE/NAME`, `sysctl NAME`. It is the same in
        each run, so that reports can identify the difference.
    :param before: observed value as plain data; `after` is the desired one.
    :param follows: the change is a consequence of another one, such as a restart after a file was written.
    :param because: paths of the files whose change is the cause.
    """

    subject: str
    before: Any = ""
    after: Any = ""
    follows: bool = False
    because: tuple[str, ...] = ()


@dataclass(frozen=True)
class Step:
    """One write.

    :param what: imperative sentence shown to the user, without secrets.
    :param act: performs the write; raises `TrainyardError` on failure.
    :param changes: the differences that it resolves, if they are not keys of the plan's states.
    """

    what: str
    act: Callable[[], object]
    changes: Sequence[Change] = ()


@dataclass(frozen=True)
class Plan:
    """The writes that bring the observed state to the desired one.

    :param steps: the writes, in order; empty if nothing has to change.
    :param before: observed state as plain data (shown in the diff), without secrets.
    :param after: desired state in the same shape as `before`.
    :param done: sentences of the steps that `execute` completed; an error does not undo them.
    :param by_subject: each key of the states, or each name in a list, is the subject of a difference, in addition to
        those that steps name. If false, the steps name all differences.
    :param unread: in check mode, why the observed state could not be read; empty if it was read.
    """

    steps: Sequence[Step] = field(default_factory=tuple)
    before: Any = None
    after: Any = None
    done: list[str] = field(default_factory=list, compare=False)
    by_subject: bool = True
    unread: str = ""

    @property
    def changed(self) -> bool:
        return bool(self.steps)

    @property
    def changes(self) -> list[Change]:
        """Return the differences that steps name, in order."""
        return [change for step in self.steps for change in step.changes]

    def diff(self) -> dict[str, Any]:
        """Return Ansible's diff: the two states, the steps as the `prepared` text, and the named differences."""
        found = {
            "before": self.before if self.before is not None else {},
            "after": self.after if self.changed and self.after is not None else self.before or {},
            "prepared": "".join(f"{step.what}\n" for step in self.steps),
        }
        if not self.by_subject:
            found["by_subject"] = False
        if self.changes:
            found["changes"] = [{**asdict(change), "because": list(change.because)} for change in self.changes]
        return found

    def execute(self) -> None:
        """Execute the steps in order.

        :raises TrainyardError: a step failed; `done` holds the steps before it.
        """
        for step in self.steps:
            step.act()
            self.done.append(step.what)
