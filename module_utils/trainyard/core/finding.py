"""Findings: what differs and is for a person, or what nobody here manages. Nothing carries them out.

A check run shows them as a change, so that `--check --diff` and a report have them. Any other run has changed nothing,
and says so: it warns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ansible.module_utils.basic import AnsibleModule

from .plan import Plan, Step
from .runner import run_plan
from .untrusted import clean


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


def without(findings: Sequence[Finding], accepted: Sequence[str]) -> list[Finding]:
    """Those whose subject no pattern fits, which has the form of file names."""
    return [each for each in findings if not any(fnmatchcase(each.subject, pattern) for pattern in accepted)]


def shown(plan: Plan, findings: Sequence[Finding]) -> Plan:
    """A plan that shows findings, too, each as a step that does nothing."""
    if not findings:
        return plan
    return Plan(
        [*plan.steps, *(Step(f"For a person: {each}", lambda: None) for each in findings)],
        {**(plan.before or {}), **{each.subject: each.before for each in findings}},
        {**(plan.after or {}), **{each.subject: each.after for each in findings}},
    )


def run_with_findings(module: AnsibleModule, look: Callable[[], tuple[Plan, Sequence[Finding]]]) -> None:
    """Look, show or carry out the plan, show or warn of the findings, and leave the module.

    :param look: reads the observed state and returns what can be done and what is for a person; called once.
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

    run_plan(module, make_plan, lambda: {"for_a_person": left})
