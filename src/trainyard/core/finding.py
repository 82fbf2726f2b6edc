"""Findings: what differs and is for a person, or what nobody here manages. Nothing carries them out.

A check run shows them as a change, so that `--check --diff` and a report have them. Any other run has changed nothing,
and says so: it warns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from .errors import TrainyardError
from .plan import Change, Plan, Step
from .runner import run_plan
from .untrusted import clean, line

KEYS = {"name", "reason"}
"""Of an entry that gives its reason."""


@dataclass(frozen=True)
class Finding:
    """One difference.

    :param subject: what differs, in the same words in every run: a report knows it again by them.
    :param before: what is there, short and free of secrets; `after` is what should be.
    """

    subject: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.before}; it should be: {self.after}."


@dataclass(frozen=True)
class Accepted:
    """A finding that the site allows.

    :param name: pattern of its subject, in the form of file names.
    :param reason: why; empty where the site gives none.
    """

    name: str
    reason: str = ""


def accepted_of(entries: Sequence[Any]) -> list[Accepted]:
    """The findings that a site allows.

    :param entries: names, or mappings of `name` and `reason`.
    :raises TrainyardError: an entry is neither.
    """
    found = []
    for entry in entries:
        if isinstance(entry, str) and entry:
            found.append(Accepted(entry))
            continue
        if not (isinstance(entry, Mapping) and set(entry) == KEYS and all(map(_is_text, entry.values()))):
            raise TrainyardError(
                f"{line(entry if isinstance(entry, str) else repr(entry), 200)!r} is not an accepted finding.",
                remedy="Set each entry of control_plane_accepted_findings to a name, or to {name, reason}.",
            )
        found.append(Accepted(entry["name"], line(entry["reason"])))
    return found


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def without(findings: Iterable[Finding], accepted: Sequence[Accepted]) -> list[Finding]:
    """Those that the site does not allow."""
    return [each for each in findings if allowed_by(each, accepted) is None]


def allowed_by(finding: Finding, accepted: Sequence[Accepted]) -> Accepted | None:
    """The first entry that allows a finding; None where none does."""
    return next((each for each in accepted if fnmatchcase(finding.subject, each.name)), None)


def shown(plan: Plan, findings: Sequence[Finding]) -> Plan:
    """A plan that shows findings, too, each as a step that does nothing."""
    if not findings:
        return plan
    return Plan(
        [*plan.steps, *(_shown_step(each) for each in findings)],
        {**(plan.before or {}), **{each.subject: each.before for each in findings}},
        {**(plan.after or {}), **{each.subject: each.after for each in findings}},
        by_subject=plan.by_subject,
    )


def _shown_step(finding: Finding) -> Step:
    change = Change(finding.subject, finding.before, finding.after)
    return Step(f"For a person: {finding}", lambda: None, [change])


def run_with_findings(
    module: AnsibleModule, look: Callable[[], tuple[Plan, Sequence[Finding]]], result: Mapping[str, Any] | None = None
) -> None:
    """Look, show or carry out the plan, show or warn of the findings, and leave the module.

    :param look: reads the observed state and returns what can be done and what is for a person; called once.
    :param result: further return values, which `look` may fill in.
    """
    left: list[str] = []

    def make_plan() -> Plan:
        plan, findings = look()
        left.extend(map(str, findings))
        if module.check_mode:
            return shown(plan, findings)
        for each in left:
            module.warn(clean(each))
        return plan

    run_plan(module, make_plan, lambda: {**(result or {}), "for_a_person": left})
