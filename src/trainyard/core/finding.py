"""Findings: differences that only an operator may resolve, and unmanaged objects. No step acts on them.

In check mode findings appear as changes, so `--check --diff` and the drift report include them. A normal run only warns
about them, because it changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from .errors import TrainyardError
from .plan import Change, Plan, Step
from .runner import run_plan
from .untrusted import clean, line

if TYPE_CHECKING:
    # Only as a type: the programs of a host without Ansible import this file, too.
    from ansible.module_utils.basic import AnsibleModule

KEYS = {"name", "reason"}
"""Keys of an accepted finding with a reason."""


@dataclass(frozen=True)
class Finding:
    """One difference.

    :param subject: the object that differs, worded the same in each run so that reports can identify it.
    :param before: the observed state, short and without secrets; `after` is the desired state.
    """

    subject: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.before}; it should be: {self.after}."


@dataclass(frozen=True)
class Accepted:
    """A finding that the site allows.

    :param name: shell-style pattern (fnmatch) of the subject.
    :param reason: why it is accepted; empty if the site gives no reason.
    """

    name: str
    reason: str = ""


def accepted_of(entries: Sequence[Any]) -> list[Accepted]:
    """Parse the findings that a site allows.

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
    """Return the findings that the site does not allow."""
    return [each for each in findings if allowed_by(each, accepted) is None]


def allowed_by(finding: Finding, accepted: Sequence[Accepted]) -> Accepted | None:
    """Return the first entry that allows a finding, or None."""
    return next((each for each in accepted if fnmatchcase(finding.subject, each.name)), None)


def shown(plan: Plan, findings: Sequence[Finding]) -> Plan:
    """Return a plan that also lists the findings, each as a step that does nothing."""
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
    return Step(f"For an operator: {finding}", lambda: None, [change])


def run_with_findings(
    module: AnsibleModule, look: Callable[[], tuple[Plan, Sequence[Finding]]], result: Mapping[str, Any] | None = None
) -> None:
    """Show or execute the plan, show or warn about the findings, and exit the module.

    :param look: reads the observed state and returns the plan and the findings; called once.
    :param result: additional return values, which `look` may fill in.
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
