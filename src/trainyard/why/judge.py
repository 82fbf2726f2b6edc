"""Judge a snapshot: determine the state of the run, and apply each rule in order.

The last part adds the answer to an error. If this explanation fails, the report of the error must not fail.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ..core.errors import TrainyardError
from ..kube.api import Api
from ..kube.reads import read
from ..trainings import record as records
from ..trainings.log_events import SUCCESSES
from ..trainings.pod_places import pod_state
from ..trainings.run_state import condition, ended
from . import answer as a
from .answer import Answer, Finding, Missing, span, text
from .rule import joined
from .rules_run import lateness
from .snapshot import Snapshot, snapshot
from .table import ABSENT, TABLE
from .view import CannotTell, View, at

_STATES = {records.STOPPED: a.STOPPED, records.FAILED: a.FAILED, **dict.fromkeys(SUCCESSES, a.FINISHED)}


def judge(snapshot: Snapshot, now: datetime | None = None) -> Answer:
    """Return the answer about one run. Pure: the same snapshot gives the same answer.

    :param now: time to judge the snapshot at; its own time if None.
    """
    if now is not None:
        snapshot = replace(snapshot, time=now.isoformat(timespec="milliseconds"))
    view = View(snapshot)
    if snapshot.live is None and snapshot.record is None and not _imports(view):
        return _absent(snapshot)
    findings, unread = _findings(view)
    try:
        state, since = _state(view, findings)
    except CannotTell as error:
        unread = [*unread, Missing(error.what, error.unread.reason)]
        state, since = a.RUNNING if view.step else a.STARTING, view.submitted
    if not findings and state == a.FAILED:
        findings = _recorded(view)
        unread = [*unread, *([] if findings else [Missing("cause", "no evidence is left of why it failed")])]
    if snapshot.live is None and view.record.get("result") == records.UNKNOWN:
        unread = [*unread, Missing("end", str(view.record.get("why") or "its result is unknown"))]
    once = list(dict.fromkeys(unread))
    return Answer(
        snapshot.run, snapshot.namespace, state, since, _headline(view, state, since, findings), findings, once
    )


def _findings(view: View) -> tuple[list[Finding], list[Missing]]:
    """Return the findings in the order of the table, and the unread parts that may contain a lower cause."""
    found: list[Finding] = []
    unread: list[Missing] = []
    lowest: int | None = None
    for rule in TABLE:
        try:
            hits = joined(rule.find(view))
        except CannotTell as error:
            # Once a cause is found, unread parts of higher layers are not decisive.
            if rule.fault and lowest is None:
                unread.append(Missing(error.what, error.unread.reason))
            continue
        for hit in hits:
            part = a.NOTE
            if rule.fault:
                lowest = rule.layer if lowest is None else lowest
                part = a.CAUSE if rule.layer == lowest else a.FOLLOWS
            effect = hit.effect.format(hit.object)
            found.append(Finding(rule.code, part, hit.object, hit.message, effect, hit.evidence, hit.remedy))
    return found, unread


def _imports(view: View) -> bool:
    try:
        return view.importing
    except CannotTell:
        return False


def _absent(snapshot: Snapshot) -> Answer:
    where = f" in the namespace {snapshot.namespace}" if snapshot.namespace else ""
    there = ", ".join(snapshot.names)
    message = f"the runs are {there}" if there else "there are no runs"
    remedy = "run trainyard trainings to list all runs"
    finding = Finding(ABSENT.code, a.CAUSE, snapshot.run, message, "", (), remedy)
    return Answer(snapshot.run, snapshot.namespace, a.ABSENT, "", f"there is no run {snapshot.run}{where}", [finding])


def _state(view: View, findings: list[Finding]) -> tuple[str, str]:
    """Return the state, and the time since when."""
    live, result = view.live, str(view.record.get("result", ""))
    if live is None and not view.importing:
        since = str(view.record.get("ended_at") or "")
        if result == records.UNKNOWN:
            return a.FINISHED, since
        return _STATES.get(result, a.STOPPED), since
    if live is not None and (over := ended(live)):
        since = str(condition(live, over).get("lastTransitionTime") or "")
        return (a.FAILED if over == "Failed" or result == records.FAILED else a.FINISHED), since
    if live is not None and live["metadata"].get("deletionTimestamp"):
        return a.STOPPED, str(live["metadata"]["deletionTimestamp"])
    if view.chief is not None and pod_state(view.chief)[0] == "running" and view.step:
        if lateness(view) is not None:
            return a.SILENT, view.now.fromtimestamp(view.steps_since, tz=view.now.tzinfo).isoformat(timespec="seconds")
        return a.RUNNING, _began(view)
    faults = [each for each in findings if each.part == a.CAUSE]
    if not faults and view.pods and not view.waiting and not view.importing:
        # A program that reports no steps is running nevertheless.
        return (a.STARTING if view.story else a.RUNNING), _began(view)
    return (a.WAITING if faults else a.STARTING), view.submitted


def _began(view: View) -> str:
    """Return the start time of the deciding pod, else that of the run."""
    for status in ((view.chief or {}).get("status") or {}).get("containerStatuses") or []:
        if began := ((status.get("state") or {}).get("running") or {}).get("startedAt"):
            return str(began)
    return view.submitted


def _recorded(view: View) -> list[Finding]:
    """Return the findings that the record kept when the run failed, else one from the reason in the record."""
    kept: Any = view.record.get("cause")
    try:
        found = [
            Finding(
                **{**each, "effect": "", "evidence": [a.Evidence(**one) for one in each["evidence"]]}
            )
            for each in kept["findings"]
        ]  # fmt: skip
    except (TypeError, KeyError):
        found = []
    if found:
        return [replace(found[0], effect=f"{found[0].object} has failed"), *found[1:]]
    why = str(view.record.get("why") or "")
    if not why:
        return []
    said = a.Evidence("record", "", str(view.record.get("ended_at") or ""), why.splitlines()[0])
    return [
        Finding("crashed", a.CAUSE, view.snapshot.run, "see its record", f"{view.snapshot.run} has failed", [said], "")
    ]


_VERBS = {
    a.WAITING: "has been waiting", a.STARTING: "has been starting", a.RUNNING: "has been running",
    a.SILENT: "has been silent", a.STOPPED: "was stopped", a.FAILED: "failed", a.FINISHED: "finished",
}  # fmt: skip


def _headline(view: View, state: str, since: str, findings: list[Finding]) -> str:
    run, then = view.snapshot.run, at(since)
    goes_on = state in (a.WAITING, a.STARTING, a.RUNNING, a.SILENT)
    passed = f" for {span(view.age(since))}" if then and goes_on else f" {span(view.age(since))} ago" if then else ""
    if state in (a.RUNNING, a.SILENT) and view.step:
        passed += f", step {view.step.get('step')} of {view.step.get('steps_total') or '?'}"
    first = next((each for each in findings if each.part == a.CAUSE), next(iter(findings), None))
    if first is None or not first.effect:
        return f"{run} {_VERBS[state]}{passed}"
    return f"{run} {_VERBS[state]}{passed}: {first.effect}"


def explain(snapshot: Snapshot) -> Answer:
    """Return the answer, or an undetermined one if judging fails: a report of an error must not fail over it."""
    try:
        return judge(snapshot)
    except Exception as error:  # Runs may write anything into their logs, so any error is possible.
        why = Missing("snapshot", f"it is malformed: {type(error).__name__}: {error}")
        return Answer(snapshot.run, snapshot.namespace, a.RUNNING, "", f"{snapshot.run}: not judged", (), (why,))


def explained(api: Api, run: str, namespace: str) -> tuple[str, dict[str, Any]]:
    """Explain why a run waits, makes no steps or failed.

    :return: the text and the JSON of the answer; both empty if there is no answer or nothing is wrong.
    """
    try:
        answer = explain(read(api, snapshot(run, namespace, datetime.now(UTC))))
    except TrainyardError:
        return "", {}
    return (text(answer), answer.as_json()) if answer.status != a.WELL and answer.state != a.ABSENT else ("", {})
