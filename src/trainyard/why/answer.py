"""What `why` answers: findings with their evidence, in words and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

SCHEMA = 1

WAITING, STARTING, RUNNING, SILENT = "waiting", "starting", "running", "silent"
STOPPED, FAILED, FINISHED, ABSENT = "stopped", "failed", "finished", "absent"
"""States of a run."""

CAUSE, FOLLOWS, NOTE = "cause", "follows", "note"
"""What a finding is: what is broken, what comes of it, or what is worth knowing and no fault."""

WELL, FOUND, UNKNOWN = 0, 1, 2
"""Exit statuses: nothing is wrong, a cause is found, it cannot be told."""


@dataclass(frozen=True)
class Evidence:
    """Something that was read, and bears a finding out.

    :param source: who says it: `node`, `pod`, `scheduler`, `kubelet`, `log`, `controller`, `claim`, `volume`, `quota`,
        `policy`, `record`, `job`.
    :param object: what it is about, such as `worker1`; empty where that is the finding's own.
    :param time: as the cluster writes it; empty where it has none.
    """

    source: str
    object: str
    time: str
    text: str


@dataclass(frozen=True)
class Finding:
    """One thing that a rule has found.

    :param code: of the rule.
    :param object: what it is about, such as `worker-1` or a node.
    :param message: the cause in a few words, such as `it asks nvidia.com/gpu 1, free are 0 of 4`.
    :param effect: what comes of it for the run, such as `worker-1 cannot be placed`.
    :param remedy: what to do.
    """

    code: str
    part: str
    object: str
    message: str
    effect: str
    evidence: Sequence[Evidence]
    remedy: str


@dataclass(frozen=True)
class Missing:
    """Something decisive that could not be read.

    :param what: the part of the snapshot, such as `nodes`.
    :param reason: one sentence without a full stop.
    """

    what: str
    reason: str


@dataclass(frozen=True)
class Answer:
    """The answer about one run.

    :param state: one of the states above.
    :param since: when that began, as the cluster writes times; empty where it is not known.
    :param headline: one sentence without a full stop.
    :param findings: causes first, then what follows from them, then notes.
    :param unread: what could not be read and might have been the cause.
    """

    run: str
    namespace: str
    state: str
    since: str
    headline: str
    findings: Sequence[Finding] = field(default_factory=tuple)
    unread: Sequence[Missing] = field(default_factory=tuple)

    @property
    def cause(self) -> Finding | None:
        """What is broken; None where nothing is, or nothing was found."""
        return next((each for each in self.findings if each.part == CAUSE), None)

    @property
    def status(self) -> int:
        """The exit status of whoever asked."""
        if self.unread:
            return UNKNOWN
        return FOUND if self.cause else WELL

    def as_json(self) -> dict[str, Any]:
        """The answer as programs read it."""
        findings = [{name: value for name, value in asdict(each).items() if name != "effect"} for each in self.findings]
        return {
            "schema": SCHEMA,
            "run": self.run,
            "namespace": self.namespace,
            "state": self.state,
            "since": self.since,
            "headline": self.headline,
            "findings": findings,
            "unread": [asdict(each) for each in self.unread],
        }
