"""The answer of `trainyard why`: findings with their evidence, as data, JSON and text.

The text has a headline, the cause, its evidence, and the remedy.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
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


LABEL = 10
"""Columns of the first word of a line."""
WIDTH = 13
"""Minimum columns of the second word."""
_BY_OBJECT = ("node", "pod", "claim", "volume", "quota", "policy", "job")
"""Sources whose evidence is shown under the name of its object."""
_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
"""Control characters: text from a log or an event could move a terminal's cursor."""


def lines(answer: Answer) -> Iterator[str]:
    """Return the lines of the text."""
    yield answer.headline
    width = max([WIDTH, *(len(each.code) + 2 for each in answer.findings)])
    width = max([width, *(len(_who(each)) + 2 for found in answer.findings for each in found.evidence)])
    for found in answer.findings:
        yield _line(found.part, found.code, _about(found), width)
        for each in found.evidence:
            yield _line("evidence", _who(each), each.text, width)
        if found.remedy:
            yield f"{'remedy':{LABEL}}{found.remedy}"
    for missing in answer.unread:
        yield _line("unread", missing.what, missing.reason, width)


def text(answer: Answer) -> str:
    """Return the text, without a final line break."""
    return "\n".join(_UNFIT.sub(" ", each) for each in lines(answer))


def sentence(found: Mapping[str, Any]) -> str:
    """Return a finding in JSON form as one line: code, message, remedy; empty if it is no valid finding."""
    parts = [found.get(name) for name in ("code", "message", "remedy")]
    if not all(isinstance(part, str) for part in parts):
        return ""
    code, message, remedy = parts
    return _UNFIT.sub(" ", f"{code}: {message}" + (f" ({remedy})" if remedy else ""))


def _about(found: Finding) -> str:
    """Return the message, with the object unless it is a cause, whose object is in the headline."""
    return found.message if found.part == "cause" else ": ".join(filter(None, (found.object, found.message)))


def _who(each: Evidence) -> str:
    return each.object if each.source in _BY_OBJECT and each.object else each.source


def _line(label: str, second: str, rest: str, width: int) -> str:
    return f"{label:{LABEL}}{second:{width}}{rest}".rstrip()


def span(seconds: float) -> str:
    """Format a duration in seconds by its two largest units: `45 s`, `2 min 10 s`, `3 h 5 min`, `2 d 4 h`."""
    left = max(0, math.floor(seconds))
    units = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
    for index, (size, name) in enumerate(units):
        if left >= size:
            rest = left % size
            smaller, unit = units[index + 1] if index + 1 < len(units) else (1, "")
            more = f" {rest // smaller} {unit}" if unit and rest // smaller else ""
            return f"{left // size} {name}{more}"
    return "0 s"


def about(seconds: float) -> str:
    """Format an estimated duration in seconds: `about 7 min`."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    return f"about {round(seconds / 60)} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"
