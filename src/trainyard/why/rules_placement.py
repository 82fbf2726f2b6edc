"""Rules about the placement of a run's pods: nodes, resources, labels, claims and volumes.

The first part covers nodes: those that a pod of the run could use, and those that run its pods. The second part covers
pods that fit on no node: other pods hold the resources, or no node has enough. The third part covers pods without a
node because of labels, claims or volumes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..kube.api import Object
from ..kube.placement import PODS, bars, shown
from ..trainings.pod_places import newest, pod_state
from ..trainings.queue import NodeShare, Share, Shortage
from .answer import Evidence, about
from .node_blockers import Placement
from .rule import EFFECT, Hit, of, role, said, since
from .view import View, event_time


def _nodes(each: Placement, code: str) -> list[Evidence]:
    return [Evidence("node", spot.node, "", spot.problems[code]) for spot in each.spots if code in spot.problems]


def _barred(view: View, code: str, what: str, remedy: str) -> Iterator[Hit]:
    """Yield hits for a problem of nodes.

    :param what: message with `{}` for the names of the nodes.
    :param remedy: with `{}` for the name of the first node.
    """
    for each in of(view, code):
        wrong = [spot.node for spot in each.spots if code in spot.problems]
        yield Hit(
            each.place,
            what.format(", ".join(wrong)),
            EFFECT,
            [*_nodes(each, code), *said(each)],
            remedy.format(wrong[0]),
        )


def node_not_ready(view: View) -> Iterator[Hit]:
    """A node that runs a pod of the run, or that it needs, is not Ready or does not exist."""
    # Include pods that are being deleted: on a lost node they stay in that state.
    for place, pod in {**newest(view.part("pods")), **view.pods}.items() if view.goes_on else ():
        name = str((pod.get("spec") or {}).get("nodeName") or "")
        if not name or pod_state(pod)[0] == "ended":
            continue
        node = view.node(name)
        if node is None:
            text, since = "the node no longer exists", ""
        else:
            conditions = {each["type"]: each for each in (node.get("status") or {}).get("conditions") or []}
            ready = conditions.get("Ready") or {}
            if ready.get("status", "True") == "True":
                continue
            text, since = str(ready.get("message") or ready.get("reason")), str(ready.get("lastTransitionTime") or "")
        yield Hit(
            place,
            f"{name} does not answer",
            "{} is on a node that does not answer",
            [Evidence("node", name, since, text)],
            f"repair {name} (check systemctl status kubelet there); the run continues elsewhere if its files allow it",
        )
    remedy = "repair {} (check systemctl status kubelet there), or add a node"
    yield from _barred(view, "node_not_ready", "{} is suitable but not Ready", remedy)


def node_pressure(view: View) -> Iterator[Hit]:
    """A node is short of memory, disk or processes, and accepts no pods."""
    remedy = "free resources on {}; kubectl describe node shows which are short"
    yield from _barred(view, "node_pressure", "{} is short of memory, disk or processes", remedy)


def cordoned(view: View) -> Iterator[Hit]:
    """A suitable node is cordoned."""
    yield from _barred(view, "cordoned", "{} is suitable but cordoned", "run kubectl uncordon {}, or add a node")


def tainted(view: View) -> Iterator[Hit]:
    """A suitable node has a taint that the pod does not tolerate."""
    remedy = "remove the taint from {}, or give the role tolerations in workloads_trainings"
    yield from _barred(view, "tainted", "{} is suitable but has a taint that it does not tolerate", remedy)


def gpu_skew(view: View) -> Iterator[Hit]:
    """The loaded driver of a node differs from the installed one, so its GPUs are not offered."""
    remedy = "restart {}, or run playbooks/gpu_driver.yml"
    yield from _barred(view, "gpu_skew", "{} offers no GPUs: its loaded driver is not the installed one", remedy)


def gpu_unhealthy(view: View) -> Iterator[Hit]:
    """GPUs of a node are unhealthy."""
    remedy = "run playbooks/gpu_recover.yml on {}; trainyard gpus shows which runs hold them"
    yield from _barred(view, "gpu_unhealthy", "GPUs of {} are unhealthy", remedy)
    for place, pod in view.pods.items():
        for status in (pod.get("status") or {}).get("containerStatuses") or []:
            sick = [
                device
                for resource in status.get("allocatedResourcesStatus") or []
                for device in resource.get("resources") or []
                if device.get("health") == "Unhealthy"
            ]
            if sick and "running" in (status.get("state") or {}):
                node = str(pod["spec"].get("nodeName"))
                names = ", ".join(str(each.get("resourceID", "?")) for each in sick)
                yield Hit(
                    place,
                    f"its GPU on {node} is unhealthy",
                    "{} uses an unhealthy GPU",
                    [Evidence("node", node, "", f"{len(sick)} GPU(s) of {place} unhealthy: {names}")],
                    f"run playbooks/gpu_recover.yml on {node}; the run continues from its last checkpoint",
                )


def gpu_missing(view: View) -> Iterator[Hit]:
    """No node has a GPU, or a node that should have GPUs offers none."""
    yield from _barred(
        view, "gpu_missing", "{} should have GPUs but offers none", "check the pods of the device plugin on {}"
    )
    for each in of(view, "never_fits"):
        if each.without_gpus:
            yield Hit(
                each.place,
                "it requests a GPU, and no node has any",
                EFFECT,
                said(each),
                "add a host with GPUs to gpu_nodes, or set gpus: 0 in workloads_trainings",
            )


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


def selector(view: View) -> Iterator[Hit]:
    """No node has the labels that the pod requires."""
    for each in of(view, "selector"):
        wanted = sorted({bar.detail for node in each.nodes for bar in bars(each.pod, node) if bar.kind == "selector"})
        yield Hit(
            each.place,
            f"no node has the labels that it requires: {'; '.join(wanted)}",
            EFFECT,
            said(each),
            f"correct {role(each)}.node_selector in workloads_trainings, or label a node",
        )


def volume_node(view: View) -> Iterator[Hit]:
    """The run's files are on a node that cannot run the pod."""
    for each in of(view, "volume_node"):
        names = [volume["metadata"]["name"] for volume in each.volumes]
        where = sorted({node for volume in each.volumes for node in _homes(volume)})
        there = [node for node in where if view.node(node)]
        place = ", ".join(where) or "a node"
        yield Hit(
            each.place,
            f"its files are on {place}, which {'cannot run it' if there else 'is not a node of this cluster'}",
            EFFECT,
            [*(Evidence("volume", name, "", f"can be used on {place} only") for name in names), *said(each)],
            f"repair {place}, or give up its files with workloads_state=absent once; shared storage outlives a node",
        )


def _homes(volume: Object) -> Iterator[str]:
    required = (volume["spec"].get("nodeAffinity") or {}).get("required") or {}
    for term in required.get("nodeSelectorTerms") or []:
        for each in term.get("matchExpressions") or []:
            if each["key"] == "kubernetes.io/hostname":
                yield from each.get("values") or []


def claim_unbound(view: View) -> Iterator[Hit]:
    """A claim does not exist, or no volume has been created for it."""
    for each in of(view, "claim_unbound"):
        claims = {one["metadata"]["name"]: one for one in view.part("claims")}
        for name in each.unbound:
            claim = claims.get(name)
            if claim is None:
                remedy = "create it, or name an existing one in workloads_trainings"
                yield Hit(each.place, f"the claim {name} does not exist", EFFECT, said(each), remedy)
                continue
            reported = [
                one for one in view.events(claim) if one.get("type") == "Warning" or one["reason"] == "FailedBinding"
            ]
            own = [Evidence("claim", name, event_time(one), str(one.get("message", ""))) for one in reported[-1:]]
            known = {one["metadata"]["name"] for one in view.part("classes")}
            wanted = claim["spec"].get("storageClassName")
            if wanted and wanted not in known:
                why = f"the storage class {wanted} does not exist"
            elif not wanted:
                why = "it has no storage class, and there is no volume for it"
            else:
                why = f"the storage class {wanted} has created no volume for it"
            remedy = "give the claim an existing storage class (storage_backend), or create a volume for it"
            yield Hit(each.place, f"its claim {name} is not bound: {why}", EFFECT, [*own, *said(each)], remedy)
