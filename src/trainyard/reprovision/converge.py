"""Carrying out a plan: a canary, batches, the cluster's own objects, a second look; the first failure ends it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..core.errors import TrainyardError
from .batches import OWN, WAITS, Plan
from .item import DONE, FAILED, LEFT, PROVEN, REPAIRED, RESTART, Item
from .report import EXIT_CLEAN, EXIT_DRIFT, EXIT_FAILED, EXIT_HELD, EXIT_UNKNOWN, NO_VERDICT

VERDICT_FAILS = "the verdict after the repair is fail"
"""A note after a converge. Where it is the first, every repair has lasted."""


@dataclass(frozen=True)
class Seen:
    """What a look has found.

    :param doubts: what could not be looked at, each a sentence.
    :param verdict: of the verifier: `pass`, `fail`, `unknown`, or None where it was not asked.
    :param refused: hosts that a role refuses, of which the rest was not looked at.
    """

    items: Sequence[Item] = ()
    doubts: Sequence[str] = ()
    verdict: str | None = None
    refused: Collection[str] = ()


@dataclass(frozen=True)
class Hands:
    """What a converge works with; each limited in time by itself.

    :param repair: changes some hosts, and whether the cluster's own objects as well; why that failed, or nothing.
    :param look: a report on some hosts, or on the whole site where none is named.
    :param ready: why a host is not as it should be after its repair (its node Ready, its pods there), or nothing.
    :param may_go_on: why nothing more may be begun, as this site wants it (the window's end), or nothing.
    :param lost: why nothing more may be begun because something is not as it was (a lost lease), or nothing.
    :param training: hosts that hold a running training by now.
    """

    repair: Callable[[Sequence[str], bool], str]
    look: Callable[[Sequence[str]], Seen]
    ready: Callable[[str], str]
    may_go_on: Callable[[], str]
    lost: Callable[[], str]
    training: Callable[[], Collection[str]]


@dataclass(frozen=True)
class Outcome:
    """What became of a plan.

    :param items: those of the report with what was done; what the second report has found besides comes after them.
    :param repaired: keys of the items that were repaired, also of a converge that failed later: what counts repeats.
    :param notes: what a person should read, the reason of a failure first.
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
    """What has happened so far."""

    done: dict[str, _Done] = field(default_factory=dict)
    tried: list[str] = field(default_factory=list)
    failed: str = ""
    stopped: str = ""
    lost: str = ""

    @property
    def over(self) -> bool:
        """Whether nothing may follow."""
        return bool(self.failed or self.stopped or self.lost)


def carry_out(plan: Plan, hands: Hands, *, verdict: str | None = None) -> Outcome:
    """Repair what a plan says, prove it, and give the exit status.

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
    """Those of a batch without a training that has begun since the look, where a restart would hurt it."""
    restarted = {item.place for item in plan.items if item.kind == RESTART}
    if not restarted.intersection(hosts):
        return hosts
    try:
        training = hands.training()
    except TrainyardError as error:
        work.lost = f"where trainings run cannot be told: {error.message}"
        return ()
    wait = [host for host in hosts if host in restarted and host in training]
    work.done |= {item.key: _Done(LEFT, WAITS) for item in plan.items if item.place in wait and item.kind in REPAIRED}
    if plan.canary in wait:
        # Without the first one nothing is known about the others; the next run chooses another.
        work.stopped = f"{plan.canary} {WAITS}"
        return ()
    return [host for host in hosts if host not in wait]


def _step(plan: Plan, hands: Hands, work: _Work, hosts: Sequence[str], *, own: bool) -> None:
    """One batch, or the cluster's own objects."""
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
        # The others follow only if the first one is as it should be, and has no drift of another kind by now.
        # Where nothing follows, the second report says that.
        seen = hands.look(hosts)
        left = [item for item in seen.items if item.place in hosts]
        said = "; ".join([*seen.doubts, *(f"{item.subject} still differs" for item in left)])
    if said:
        named = "the cluster's own objects" if own else ", ".join(hosts)
        work.failed = f"{named}: {said}"
    done = _Done(FAILED, f"failed: {said}") if said else _Done(DONE, "repaired")
    work.done |= {item.key: done for item in mine}


def _proved(plan: Plan, work: _Work, seen: Seen) -> Outcome:
    """The outcome after the second report, which must not show what was repaired."""
    there = {item.key for item in seen.items}
    places = {item.key: item.place for item in plan.items}
    done = dict(work.done)
    for key, what in work.done.items():
        if what.outcome == DONE and key in there:
            done[key] = STILL
        elif what.outcome == DONE and not seen.doubts and places[key] not in seen.refused:
            # A report that could not look at everything proves nothing.
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
    """The items of a plan with what was done; what a hold kept from being repaired says why."""
    told = []
    for item in plan.items:
        why = plan.held.get(item.place, "") if item.kind in REPAIRED else ""
        held = _Done(LEFT, why) if why else _Done(item.outcome, item.done)
        each = done.get(item.key, held)
        told.append(replace(item, outcome=each.outcome, done=each.words))
    return tuple(told)
