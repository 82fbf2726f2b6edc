"""Carry out a plan: repair the canary, the batches and the cluster's own objects, then check the site again.

The first failure ends the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..core.errors import TrainyardError
from .items import DONE, FAILED, LEFT, PROVEN, REPAIRED, RESTART, Item
from .repair_plan import OWN, WAITS, Plan
from .report import EXIT_CLEAN, EXIT_DRIFT, EXIT_FAILED, EXIT_HELD, EXIT_UNKNOWN, NO_VERDICT

VERDICT_FAILS = "the verdict after the repair is fail"
"""A note after a converge. If it is the first note, every repair has lasted."""


@dataclass(frozen=True)
class Seen:
    """The result of a check run.

    :param doubts: parts that could not be checked, each a sentence.
    :param verdict: of the verifier: `pass`, `fail`, `unknown`, or None if it did not run.
    :param refused: hosts that a role refuses; the rest of such a host was not checked.
    """

    items: Sequence[Item] = ()
    doubts: Sequence[str] = ()
    verdict: str | None = None
    refused: Collection[str] = ()


@dataclass(frozen=True)
class Hands:
    """The operations of a converge. Each one limits its own time.

    :param repair: takes hosts, and whether to repair the cluster's own objects; returns why it failed, or nothing.
    :param look: checks the given hosts; the whole site if there are none.
    :param ready: returns why a repaired host is unhealthy (node not Ready, pods missing), or nothing.
    :param may_go_on: returns which rule of the site forbids the next step (the window has ended), or nothing.
    :param lost: returns which precondition is gone (a lost lease), or nothing.
    :param training: returns the hosts that hold a running training now.
    """

    repair: Callable[[Sequence[str], bool], str]
    look: Callable[[Sequence[str]], Seen]
    ready: Callable[[str], str]
    may_go_on: Callable[[], str]
    lost: Callable[[], str]
    training: Callable[[], Collection[str]]


@dataclass(frozen=True)
class Outcome:
    """The result of a plan.

    :param items: the items of the report with their outcomes, then the new items of the second report.
    :param repaired: keys of the repaired items, for the limit of repeats; also if the converge failed later.
    :param notes: for an operator, the reason of a failure first.
    """

    status: int
    items: tuple[Item, ...]
    repaired: tuple[str, ...] = ()
    verdict: str | None = None
    notes: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Done:
    """The outcome for an item, and the sentence about it."""

    outcome: str
    words: str


STILL = _Done(FAILED, "failed: it still differs")
PROVEN_WORDS = "repaired, proven"


@dataclass
class _Work:
    """The progress so far."""

    done: dict[str, _Done] = field(default_factory=dict)
    tried: list[str] = field(default_factory=list)
    failed: str = ""
    stopped: str = ""
    lost: str = ""

    @property
    def over(self) -> bool:
        """Return whether no further step may follow."""
        return bool(self.failed or self.stopped or self.lost)


def carry_out(plan: Plan, hands: Hands, *, verdict: str | None = None) -> Outcome:
    """Repair the items of a plan, prove the repairs, and return the outcome.

    :param verdict: of the report that the plan was made from, for a converge that has nothing to do.
    """
    if plan.refused:
        return Outcome(EXIT_HELD, _told(plan, {}), verdict=verdict, limits=(plan.refused,))
    if plan.empty:
        left = bool(plan.items) or verdict == "fail"
        status = EXIT_DRIFT if left else EXIT_UNKNOWN if verdict == "unknown" else EXIT_CLEAN
        notes = (NO_VERDICT,) if status == EXIT_UNKNOWN else ()
        return Outcome(status, _told(plan, {}), verdict=verdict, notes=notes)
    work = _Work()
    for hosts in (*([(plan.canary,)] if plan.canary else []), *plan.batches):
        calm = _calm(plan, hands, work, hosts)
        if calm:
            _step(plan, hands, work, calm, own=False)
        if work.over:
            break
    if plan.own and not work.over:
        _step(plan, hands, work, (), own=True)
    if not work.tried:
        status, why = (EXIT_UNKNOWN, work.lost) if work.lost else (EXIT_HELD, work.stopped)
        return Outcome(status, _told(plan, work.done), verdict=verdict, notes=(why,))
    return _proved(plan, work, hands.look(()))


def _calm(plan: Plan, hands: Hands, work: _Work, hosts: Sequence[str]) -> Sequence[str]:
    """Return the hosts of a batch whose repair hurts no training that has started since the check run.

    Only a restart hurts a training.
    """
    restarted = {item.place for item in plan.items if item.kind == RESTART}
    if not restarted.intersection(hosts):
        return hosts
    try:
        training = hands.training()
    except TrainyardError as error:
        work.lost = f"the hosts of the running trainings are unknown: {error.message}"
        return ()
    wait = [host for host in hosts if host in restarted and host in training]
    work.done |= {item.key: _Done(LEFT, WAITS) for item in plan.items if item.place in wait and item.kind in REPAIRED}
    if plan.canary in wait:
        # Without the canary the other hosts may not follow; the next run chooses another canary.
        work.stopped = f"{plan.canary} {WAITS}"
        return ()
    return [host for host in hosts if host not in wait]


def _step(plan: Plan, hands: Hands, work: _Work, hosts: Sequence[str], *, own: bool) -> None:
    """Repair one batch, or the cluster's own objects."""
    work.lost = hands.lost()
    work.stopped = "" if work.lost else hands.may_go_on()
    if work.over:
        return
    mine = [item for item in plan.items if item.place in (OWN if own else hosts) and item.kind in REPAIRED]
    work.tried += [item.key for item in mine]
    said = hands.repair(hosts, own)
    if not said and hosts:
        said = next(filter(None, (hands.ready(host) for host in hosts)), "")
    if not said and tuple(hosts) == (plan.canary,) and (plan.batches or plan.own):
        # The other hosts follow only if the canary has no drift left, of any kind. If nothing follows, the second
        # report shows this.
        seen = hands.look(hosts)
        left = [item for item in seen.items if item.place in hosts]
        said = "; ".join([*seen.doubts, *(f"{item.subject} still differs" for item in left)])
    if said:
        named = "the cluster's own objects" if own else ", ".join(hosts)
        work.failed = f"{named}: {said}"
    done = _Done(FAILED, f"failed: {said}") if said else _Done(DONE, "repaired")
    work.done |= {item.key: done for item in mine}


def _proved(plan: Plan, work: _Work, seen: Seen) -> Outcome:
    """Return the outcome after the second report, which must not show a repaired item."""
    there = {item.key for item in seen.items}
    places = {item.key: item.place for item in plan.items}
    done = dict(work.done)
    for key, what in work.done.items():
        if what.outcome == DONE and key in there:
            done[key] = STILL
        elif what.outcome == DONE and not seen.doubts and places[key] not in seen.refused:
            # An incomplete report proves nothing.
            done[key] = _Done(PROVEN, PROVEN_WORDS)
    known = {item.key for item in plan.items}
    new = [item for item in seen.items if item.key not in known]
    back = [key for key in done if done[key] is STILL]
    notes = [work.failed] if work.failed else []
    notes += [f"{len(back)} items still differ after their repair"] if back else []
    ill = sorted({places[key] for key, what in work.done.items() if what.outcome == DONE} & {*seen.refused})
    notes += [f"a role refuses {host} after its repair" for host in ill]
    notes += [VERDICT_FAILS] if seen.verdict == "fail" else []
    notes += [*seen.doubts, *filter(None, (work.lost, work.stopped))]
    well = {key for key, each in done.items() if each.outcome in (DONE, PROVEN)}
    left = [item for item in plan.items if item.key not in well]
    if work.failed or back or ill or seen.verdict == "fail":
        status = EXIT_FAILED
    elif seen.doubts or work.lost:
        status = EXIT_UNKNOWN
    elif work.stopped:
        status = EXIT_HELD
    elif left or new:
        status = EXIT_DRIFT
    else:
        status = EXIT_CLEAN if seen.verdict == "pass" else EXIT_UNKNOWN
        notes += [] if seen.verdict == "pass" else [NO_VERDICT]
    repaired = tuple(key for key in work.tried if key in well or key in back)
    return Outcome(status, (*_told(plan, done), *new), repaired, seen.verdict, tuple(notes))


def _told(plan: Plan, done: Mapping[str, _Done]) -> tuple[Item, ...]:
    """Return the items of a plan with their outcomes. An item on a held host carries the reason."""
    changed = []
    for item in plan.items:
        why = plan.held.get(item.place, "") if item.kind in REPAIRED else ""
        held = _Done(LEFT, why) if why else _Done(item.outcome, item.done)
        each = done.get(item.key, held)
        changed.append(replace(item, outcome=each.outcome, done=each.words))
    return tuple(changed)
