"""Pods for which no node has room: because others hold it, or because none ever has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..kube.placement import PODS
from ..kube.quantities import shown
from ..trainings.queue import NodeShare, Share, Shortage
from .answer import Evidence
from .no_node import EFFECT, of, role, said, since
from .rule import Hit
from .text import about
from .view import View

HOLDERS = 4
"""Runs and namespaces that are named for a node."""
UNPLACED_SECONDS = 60.0
"""The scheduler may be about to place a pod: what it waited for was given back a moment ago."""


def never_fits(view: View) -> Iterator[Hit]:
    """It asks for more than any node has, or the run for more than all have."""
    for each in of(view, "never_fits"):
        short = next(iter(each.short), None)
        if short is None or each.without_gpus:
            continue  # which is gpu_missing's
        mine = role(each)
        asked, largest = shown(short.resource, short.asked), short.largest
        assert largest is not None
        has = shown(short.resource, largest.total)
        if short.never:
            message = f"it asks {short.resource} {asked}, and {largest.node}, the largest node, has {has}"
            remedy = f"lower {mine}.limits and {mine}.requests in workloads_trainings to what a node has, or add a node"
        elif not each.own:
            wanted = ", ".join(f"{name} {shown(name, number)}" for name, number in each.asked.items() if name != PODS)
            message = f"it asks {wanted}, and no node has all of it"
            remedy = f"lower {mine}.limits and {mine}.requests in workloads_trainings to what a node has, or add a node"
        else:
            message = f"it asks {short.resource} {asked}, and the run's other pods hold what the cluster has"
            remedy = f"lower {mine}.replicas or {mine}.requests in workloads_trainings, or add a node"
        yield Hit(each.place, message, EFFECT, [*_shares(view, short), *said(each)], remedy)


def held_by(view: View) -> Iterator[Hit]:
    """Others hold what it waits for; they are named, with the time that they need."""
    for each in of(view, "held_by"):
        short = next(iter(each.short), None)
        if short is None:
            continue
        free = sum(max(0.0, node.free) for node in short.nodes)
        total = sum(node.total for node in short.nodes)
        numbers = f"free are {shown(short.resource, free)} of {shown(short.resource, total)}"
        who = _awaited(view, short)
        wait = f"wait for {who}, or " if who else ""
        mine = role(each)
        yield Hit(
            each.place,
            f"it asks {short.resource} {shown(short.resource, short.asked)}, {numbers}",
            EFFECT,
            [*_shares(view, short), *said(each)],
            f"{wait}lower {mine}.{'replicas' if mine == 'worker' else 'requests'} in workloads_trainings",
        )


def _awaited(view: View, short: Shortage) -> str:
    """The run that gives back first; all that hold it where none says when."""
    theirs = {(share.namespace, share.run) for node in short.nodes for share in node.held if share.run}
    theirs.discard((view.snapshot.namespace, view.snapshot.run))
    known = {key: view.snapshot.others.get(f"{key[0]}/{key[1]}", (None,))[-1] for key in theirs}
    soon = sorted((seconds, key[1]) for key, seconds in known.items() if seconds is not None)
    return soon[0][1] if soon else ", ".join(sorted(run for _, run in theirs))


def _shares(view: View, short: Shortage) -> list[Evidence]:
    return [Evidence("node", node.node, "", _share(view, short.resource, node)) for node in short.nodes]


def _share(view: View, resource: str, node: NodeShare) -> str:
    """`2 of 2 held by cnn/worker-0, cnn/worker-1 (step 1200 of 2000, about 7 min left)`."""
    taken = f"{shown(resource, node.total - node.free)} of {shown(resource, node.total)} held"
    runs: dict[tuple[str, str], list[Share]] = {}
    for share in node.held:
        runs.setdefault((share.namespace, share.run), []).append(share)
    parts = [
        _who(shares) + _left(view, *key)
        for key, shares in sorted(runs.items(), key=lambda item: not item[0][1])[:HOLDERS]
    ]
    return f"{taken} by {'; '.join(parts)}" if parts else taken


def _who(shares: Sequence[Share]) -> str:
    """Pods of a run by their places; several of no run as so many pods of their namespace."""
    if not shares[0].run and len(shares) > 2:
        return f"{shares[0].namespace} ({len(shares)} pods)"
    return ", ".join(map(str, shares))


def _left(view: View, namespace: str, run: str) -> str:
    if not run or run == view.snapshot.run:
        return ""
    known: Sequence[float | None] = view.snapshot.others.get(f"{namespace}/{run}") or (None, None, None)
    step, steps, seconds = known
    if seconds is None:
        return " (time left unknown)"
    return f" (step {step} of {steps}, {about(seconds)} left)"


def unplaced(view: View) -> Iterator[Hit]:
    """The scheduler refuses for a reason that is not looked at here."""
    for each in of(view, "unplaced"):
        if view.age(since(each)) >= UNPLACED_SECONDS and each.spots:
            view.part("elsewhere")  # Who may not see all pods does not know what is free.
            open_ = [spot.node for spot in each.spots if not spot.problems]
            message = f"{', '.join(open_)} would have room, and the scheduler refuses all the same"
            yield Hit(each.place, message, EFFECT, said(each), "what the scheduler says names the reason")
