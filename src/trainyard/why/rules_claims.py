"""Rules for pods without a node because of labels, claims or volumes."""

from __future__ import annotations

from collections.abc import Iterator

from ..kube.api import Object
from ..kube.placement import bars
from .answer import Evidence
from .no_node import EFFECT, of, role, said
from .rule import Hit
from .view import View, event_time


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
            told = [
                one for one in view.events(claim) if one.get("type") == "Warning" or one["reason"] == "FailedBinding"
            ]
            own = [Evidence("claim", name, event_time(one), str(one.get("message", ""))) for one in told[-1:]]
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
