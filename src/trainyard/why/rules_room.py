"""Rules for pods that fit on no node, because other pods hold the resources or no node has enough."""

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
"""Maximum number of runs and namespaces named for a node."""
UNPLACED_SECONDS = 60.0
"""Seconds before a refusal counts: if resources were just released, the scheduler may be about to place the pod."""


def never_fits(view: View) -> Iterator[Hit]:
    """The pod requests more than any node has, or the run more than all nodes have."""
    for each in of(view, "never_fits"):
        short = next(iter(each.short), None)
        if short is None or each.without_gpus:
            continue  # `gpu_missing` covers that.
        mine = role(each)
        asked, largest = shown(short.resource, short.asked), short.largest
        assert largest is not None
        has = shown(short.resource, largest.total)
        if short.never:
            message = f"it requests {short.resource} {asked}, and {largest.node}, the largest node, has {has}"
            remedy = f"lower {mine}.limits and {mine}.requests in workloads_trainings to what a node has, or add a node"
        elif not each.own:
            wanted = ", ".join(f"{name} {shown(name, number)}" for name, number in each.asked.items() if name != PODS)
            message = f"it requests {wanted}, and no node has all of it"
            remedy = f"lower {mine}.limits and {mine}.requests in workloads_trainings to what a node has, or add a node"
        else:
            message = f"it requests {short.resource} {asked}, and the run's other pods hold all that the cluster has"
            remedy = f"lower {mine}.replicas or {mine}.requests in workloads_trainings, or add a node"
        yield Hit(each.place, message, EFFECT, [*_shares(view, short), *said(each)], remedy)


def held_by(view: View) -> Iterator[Hit]:
    """Other pods hold the resources that it waits for. They are named, with their time left."""
    for each in of(view, "held_by"):
        short = next(iter(each.short), None)
        if short is None:
            continue
        free = sum(max(0.0, node.free) for node in short.nodes)
        total = sum(node.total for node in short.nodes)
        numbers = f"{shown(short.resource, free)} of {shown(short.resource, total)} are free"
        who = _awaited(view, short)
        wait = f"wait for {who}, or " if who else ""
        mine = role(each)
        yield Hit(
            each.place,
            f"it requests {short.resource} {shown(short.resource, short.asked)}; {numbers}",
            EFFECT,
            [*_shares(view, short), *said(each)],
            f"{wait}lower {mine}.{'replicas' if mine == 'worker' else 'requests'} in workloads_trainings",
        )


def _awaited(view: View, short: Shortage) -> str:
    """Return the run that releases the resource first, or all runs that hold it if no time left is known."""
    theirs = {(share.namespace, share.run) for node in short.nodes for share in node.held if share.run}
    theirs.discard((view.snapshot.namespace, view.snapshot.run))
    known = {key: view.snapshot.others.get(f"{key[0]}/{key[1]}", (None,))[-1] for key in theirs}
    soon = sorted((seconds, key[1]) for key, seconds in known.items() if seconds is not None)
    return soon[0][1] if soon else ", ".join(sorted(run for _, run in theirs))


def _shares(view: View, short: Shortage) -> list[Evidence]:
    return [Evidence("node", node.node, "", _share(view, short.resource, node)) for node in short.nodes]


def _share(view: View, resource: str, node: NodeShare) -> str:
    """Return text such as `2 of 2 held by cnn/worker-0, cnn/worker-1 (step 1200 of 2000, about 7 min left)`."""
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
    """Return the pods of a run by place; three or more pods of no run as a count for their namespace."""
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
    """The scheduler refuses the pod for a reason that no other code covers."""
    for each in of(view, "unplaced"):
        if view.age(since(each)) >= UNPLACED_SECONDS and each.spots:
            view.part("elsewhere")  # Free resources are unknown without the right to see all pods.
            open_ = [spot.node for spot in each.spots if not spot.problems]
            message = f"{', '.join(open_)} would have room, but the scheduler refuses it"
            yield Hit(each.place, message, EFFECT, said(each), "see the scheduler's message for the reason")
