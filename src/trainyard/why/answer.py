"""The answer of `trainyard why`: findings with their evidence, also as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

SCHEMA = 1

WAITING, STARTING, RUNNING, SILENT = "waiting", "starting", "running", "silent"
STOPPED, FAILED, FINISHED, ABSENT = "stopped", "failed", "finished", "absent"
"""States of a run."""

CAUSE, FOLLOWS, NOTE = "cause", "follows", "note"
"""Kinds of findings: a fault, a consequence of that fault, or a note that is no fault."""

WELL, FOUND, UNKNOWN = 0, 1, 2
"""Exit statuses: nothing is wrong, a cause was found, the cause cannot be determined."""


@dataclass(frozen=True)
class Evidence:
    """A fact from the snapshot that supports a finding.

    :param source: origin: `node`, `pod`, `scheduler`, `kubelet`, `log`, `controller`, `claim`, `volume`, `quota`,
        `policy`, `record`, `job`.
    :param object: subject, such as `worker1`; empty if it is the object of the finding.
    :param time: in the cluster's format; empty if there is none.
    """

    source: str
    object: str
    time: str
    text: str


@dataclass(frozen=True)
class Finding:
    """A result of a rule.

    :param code: of the rule.
    :param part: `CAUSE`, `FOLLOWS` or `NOTE`.
    :param object: subject, such as `worker-1` or a node.
    :param message: the cause in a few words, such as `it requests nvidia.com/gpu 1; 0 of 4 are free`.
    :param effect: consequence for the run, such as `worker-1 cannot be placed`.
    :param remedy: action for the operator.
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
    """A decisive part of the snapshot that could not be read.

    :param what: name of the part, such as `nodes`.
    :param reason: one sentence without a full stop.
    """

    what: str
    reason: str


@dataclass(frozen=True)
class Answer:
    """The answer about one run.

    :param state: one of the states above.
    :param since: start of that state, in the cluster's format; empty if unknown.
    :param headline: one sentence without a full stop.
    :param findings: causes first, then their consequences, then notes.
    :param unread: parts that could not be read and may contain the cause.
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
        """The first finding that is a cause; None if there is none."""
        return next((each for each in self.findings if each.part == CAUSE), None)

    @property
    def status(self) -> int:
        """The exit status of `trainyard why`."""
        if self.unread:
            return UNKNOWN
        return FOUND if self.cause else WELL

    def as_json(self) -> dict[str, Any]:
        """Return the answer for programs."""
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
