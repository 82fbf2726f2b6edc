"""A converge: check the site, plan and repair within the limits, check again, and report.

Parts: the report of a converge, with the outcome of each item; the converge itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ..core.errors import TrainyardError
from ..kube.api import Api
from ..kube.connection import connect as connect_to_cluster
from ..site import schedule
from . import node_state, repair_plan, stopping
from .find import LOCALHOST, REFUSED, find
from .items import PERSON, PROVEN, REPAIRED, Item
from .playbook_runner import RUN
from .repair_plan import OWN, Plan, plan
from .repairs import PROVEN_WORDS, VERDICT_FAILS, Hands, Outcome, Seen, carry_out
from .report import (
    EXIT_CLEAN,
    EXIT_DRIFT,
    EXIT_FAILED,
    EXIT_HELD,
    EXIT_UNKNOWN,
    doubts,
    hosts_of,
    of_the_site,
    ordered,
    verdict_notes,
)
from .report_run import Looked, Session
from .report_store import Store, known


def repaired(
    session: Session, document: Mapping[str, Any], last: Looked | None, outcome: Outcome, notes: Sequence[str]
) -> dict[str, Any]:
    """Return the report of a converge: the report of its check run, with the outcomes.

    :param document: the report of the check run before the repair.
    :param last: the check run after the repair; None if there was none.
    :param notes: additional notes.
    """
    now = session.clock.time()
    remarks = [session.masker.text(each) for each in (*outcome.notes, *notes)]
    begun = session.report
    return {
        **document,
        "ended": now,
        "seconds": round(now - float(begun["began"]), 1),
        "repaired": begun["repaired"],
        "exit_status": outcome.status,
        "headline": _headline(outcome, remarks),
        "hosts": hosts_of(last.found, session.wanted, last.items) if last else document["hosts"],
        "items": [session.masker.data(item.as_json()) for item in ordered(outcome.items)],
        "verdict": outcome.verdict,
        "limits": list(outcome.limits),
        "notes": [*dict.fromkeys((*([] if last else document["notes"]), *_notes(session, last))), *remarks],
    }


def _notes(session: Session, last: Looked | None) -> list[str]:
    """Return the notes of the session, and the checks that failed in the verdict of the last check run."""
    missed = verdict_notes(last.found) if last else []
    return [*session.report["notes"], *(session.masker.text(each) for each in missed)]


def _headline(outcome: Outcome, remarks: Sequence[str]) -> str:
    """Return one line about a converge."""
    well = sum(item.repaired for item in outcome.items)
    left = len(outcome.items) - well
    parts = [f"{well} of {len(outcome.items)} items repaired"] if well else []
    if outcome.status == EXIT_HELD:
        return "; ".join(["held back: " + next(iter([*outcome.limits, *remarks]), ""), *parts])
    if outcome.status == EXIT_FAILED:
        first = next(iter(remarks), "")
        return "; ".join([first if first == VERDICT_FAILS else f"a repair failed: {first}", *parts])
    if outcome.status == EXIT_UNKNOWN:
        return "; ".join(["unknown: " + "; ".join(remarks), *parts])
    if outcome.status == EXIT_DRIFT:
        return "; ".join([*parts, f"{left} left for an operator" if left else "the verdict is not pass"])
    return "all drift repaired" if well else "clean"


Connect = Callable[[str], Api]

LISTED = 20
"""Limit of the changes that a note names."""


def converge(session: Session, connect: Connect = connect_to_cluster) -> int:
    """Check the site, repair it, prove the repair, and report. If there is nothing to repair, no second run follows.

    :param connect: connects to the cluster. The only change through this connection is a temporary pod.
    :returns: the exit status.
    """
    _let_settle(session, connect)
    try:
        looked = session.look()
    except TrainyardError as error:
        return session.give_up(str(error))
    if not any(item.kind in REPAIRED for item in looked.items):
        return session.close(_with_mended(session, looked, {**session.document(looked), "repaired": []}))
    document = session.document(looked)
    reason = _blind(session, looked)
    training: set[str] = set()
    if not reason:
        try:
            api = connect(session.site.kubeconfig)
            node_state.clear(api)
            training = node_state.training(api, session.site.nodes)
        except TrainyardError as error:
            reason = f"the hosts of the running trainings are unknown: {error.message}"
    if reason:
        unchanged = session.document(looked, [f"nothing was changed: {reason}"])
        return session.close(_with_mended(session, looked, unchanged))
    made, notes = _planned(session, looked, training)
    work = _Work(session, looked, made, connect)
    doubt = doubts(looked.found, document["hosts"], looked.stopped)
    outcome = carry_out(made, work.hands(), verdict=looked.found.verdict)
    if made.empty and doubt and outcome.status in (EXIT_CLEAN, EXIT_DRIFT):
        outcome = replace(outcome, status=EXIT_UNKNOWN, notes=tuple(doubt))
    work.remember(outcome)
    return session.close(_with_mended(session, looked, repaired(session, document, work.last, outcome, notes)))


def _let_settle(session: Session, connect: Connect) -> None:
    """Wait for pods that an interrupted repair restarted, as long as the repair itself would have waited.

    Otherwise the verdict would find pods that wait for their next start. The verdict reports pods that do not recover.
    """
    site = session.site
    if any((session.store.report(name) or {}).get("repaired") for name in session.closed):
        seconds = min(node_state.READY_SECONDS, session.deadline.left)
        node_state.wait_for_pods(lambda: connect(site.kubeconfig), site.system_namespaces, session.clock, seconds)


def _with_mended(session: Session, looked: Looked, document: dict[str, Any]) -> dict[str, Any]:
    """Add the items that were repaired before the check run to a report.

    The check run proves such a repair if it does not find the item.
    """
    there = {item.key for item in looked.items}
    aged = known(session.restored.items, session.before, session.clock.time())
    restored = [item for item in aged if item.key not in there]
    if not restored:
        return document
    proven = [replace(item, outcome=PROVEN, done=PROVEN_WORDS).as_json() for item in restored]
    headline = f"the kubeconfig was repaired; {document['headline']}"
    return {
        **document,
        "headline": "all drift repaired" if document["exit_status"] == EXIT_CLEAN else headline,
        "items": [*proven, *document["items"]],
        "repaired": [*(item.key for item in restored), *(document["repaired"] or [])],
    }


def _blind(session: Session, looked: Looked) -> str:
    """Return why the check run does not suffice to change anything, as a clause; empty if it does."""
    found = looked.found
    if looked.stopped or not found.ended or found.verdict is None:
        return looked.stopped or "the check is incomplete"
    if found.blind:
        return found.blind[0]
    holder = session.locks.holder if session.locks else None
    if holder is None or not holder.leased:
        return " ".join(["the cluster's lease is not held.", *(holder.notes if holder else ())]).rstrip(".")
    return ""


def _planned(session: Session, looked: Looked, training: Collection[str]) -> tuple[Plan, list[str]]:
    """Return the plan and notes about its approval. An approval by an operator overrides the limits."""
    site, now, keys = session.site, session.clock.time(), [item.key for item in looked.items]

    def made(approved: bool) -> Plan:
        return plan(
            looked.items, site.hosts, site.workers, site.settings, unreachable=looked.found.unreached,
            training=training, converges=converges(session.store), approved=approved,
            some=bool(session.hosts),
        )  # fmt: skip

    first = made(False)
    if not first.refused:
        return first, []
    folder, commit = session.store.folder, session.revision.commit
    found, why = repair_plan.find(repair_plan.load(folder), keys, commit, now, site.settings.approval_hours)
    if found is None:
        said = f"run `trainyard reprovision approve {session.name}` to allow one converge; on the schedule's host, run"
        return first, [why, f"{said} `sudo /etc/trainyard/reprovision/start approve {session.name}`"]
    repair_plan.use(folder, found, now)
    return made(True), [f"{first.refused}; {found.by} has approved {found.report}"]


def converges(store: Store) -> list[list[str]]:
    """Return the keys that each converge of the site repaired, the newest last, without converges beyond the limits."""
    done = [each for each in of_the_site(store.reports()) if each["mode"] == "converge"]
    reports = [each for each in done if each.get("repaired") is not None]
    return [list(each["repaired"]) for each in reversed(reports)]


class _Work:
    """The operations of one converge, and its last check run."""

    def __init__(self, session: Session, looked: Looked, made: Plan, connect: Connect) -> None:
        self._session, self._plan, self._connect = session, made, connect
        site = session.site
        # An item that is left to an operator because it keeps coming back stays so while it exists.
        self._again = list(made.repeats)
        self._windows = [schedule.parse(each) for each in site.settings.windows]
        self._tried: list[str] = []
        # These hosts are not repaired and may be down. The cluster's own objects are repaired without them.
        left = {*looked.found.unreached, *looked.found.refused, *made.held}
        self._unready = [host for host in site.hosts if host in left]
        self.last: Looked | None = None

    def hands(self) -> Hands:
        return Hands(self._repair, self._look, self._ready, self._may_go_on, self._lost, self._training)

    def remember(self, outcome: Outcome) -> None:
        """Record the repaired items for the limit of repeats, and drop the ages of items that are gone."""
        session = self._session
        if not self._plan.refused:
            session.report["repaired"] = list(dict.fromkeys([*outcome.repaired, *self._again]))
        proven = {item.key for item in outcome.items if item.outcome == PROVEN}
        session.history = {key: entry for key, entry in session.history.items() if key not in proven}
        session.store.keep_history(session.history)

    def _repair(self, hosts: Sequence[str], own: bool) -> str:
        places = OWN if own else hosts
        self._tried += [item.key for item in self._plan.items if item.place in places and item.kind in REPAIRED]
        try:
            # Recorded before the change, so that it also counts if the run is killed.
            self._session.note(repaired=[*self._tried, *self._again])
            # Without this, the controller's plays for the cluster's own objects would change nodes left to an operator.
            unready = self._unready if own else ()
            # Leave time for the last check run, which proves the changes.
            limit = max(self._session.deadline.left - self._session.look_seconds, 1)
            played = self._session.play(RUN, (LOCALHOST,) if own else hosts, objects=own, unready=unready, limit=limit)
        except TrainyardError as error:
            return error.message.rstrip(".")
        found = find(played.events)
        self._changed_besides(found.changed)
        bad = {*found.refused, *found.unreached} & {*hosts}
        said = [f"{item.host}: {item.reason or REFUSED}" for item in found.items if item.place in bad and item.reason]
        if played.stopped or found.blind:
            return played.stopped or "; ".join([*found.blind, *(item.reason for item in _refused(found.items))])
        return "; ".join(said) if bad else "" if found.ended else "the run did not finish"

    def _changed_besides(self, items: Sequence[Item]) -> None:
        """Note changes of a repair that no check run found: they are newer, or their task has no check mode."""
        planned = {item.key for item in self._plan.items}
        unplanned = [f"{item.host}: {item.subject}" for item in items if item.key not in planned]
        if unplanned:
            shown = "; ".join(unplanned[:LISTED]) + (
                f" and {len(unplanned) - LISTED} more" if len(unplanned) > LISTED else ""
            )
            note = self._session.masker.text(f"changed by the repair, but not found by the check before it: {shown}")
            self._session.note(notes=[*self._session.report["notes"], note])

    def _look(self, hosts: Sequence[str]) -> Seen:
        session = self._session
        if stopping.requested():
            return Seen(doubts=[stopping.WORDS])
        try:
            looked = session.look_again(hosts)
        except TrainyardError as error:
            return Seen(doubts=[error.message.rstrip(".")])
        wanted = hosts or session.wanted
        states = hosts_of(looked.found, wanted, looked.items)
        if not hosts:
            self.last = looked
        # Skip hosts that this check run leaves out.
        mine = {name: state for name, state in states.items() if name in wanted}
        doubt = doubts(looked.found, mine, looked.stopped, judged=not hosts)
        return Seen(looked.items, doubt, looked.found.verdict, looked.found.refused)

    def _ready(self, host: str) -> str:
        site = self._session.site
        if host not in site.nodes:
            return ""
        connected = lambda: self._connect(site.kubeconfig)  # noqa: E731 - read again: a repair may have changed it
        node, clock = site.nodes[host], self._session.clock
        ends = self._session.deadline
        why = node_state.wait_for_node(
            connected, node, site.system_namespaces, clock, min(node_state.READY_SECONDS, ends.left)
        )
        seconds = min(node_state.SECONDS, ends.left)
        return why or node_state.why_not(connected(), node, site.pause_image, clock, seconds)

    def _training(self) -> Collection[str]:
        site = self._session.site
        return node_state.training(self._connect(site.kubeconfig), site.nodes)

    def _lost(self) -> str:
        if stopping.requested():
            return stopping.WORDS
        return (self._session.locks.lost() if self._session.locks else "").rstrip(".")

    def _may_go_on(self) -> str:
        session = self._session
        if schedule.rest(self._windows, datetime.fromtimestamp(session.clock.time(), UTC)) <= 0:
            return "the window has ended"
        return (
            ""
            if session.deadline.left > 2 * session.look_seconds
            else "the time of this run is up (reprovision_timeout)"
        )


def _refused(items: Sequence[Item]) -> list[Item]:
    return [item for item in items if item.kind == PERSON and item.reason]
