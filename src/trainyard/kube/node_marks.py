"""Labels and the taint that identify nodes. kubeadm and the kubelet set them only once, so they are repaired here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ..core.plan import Plan, Step
from .api import Api, Object
from .drain import MERGE_PATCH

CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
TAINT: Mapping[str, str] = {"key": CONTROL_PLANE, "effect": "NoSchedule"}
LABELS: Mapping[str, str] = {CONTROL_PLANE: "", "node.kubernetes.io/exclude-from-external-load-balancers": ""}
"""Labels of control plane nodes, as set by `kubeadm init phase mark-control-plane`."""

HOSTNAME = "kubernetes.io/hostname"
"""Label that binds pods and volumes to a node; the kubelet sets it only at its start."""


def plan_marks(api: Api, nodes: Sequence[str], control_plane: Sequence[str], *, schedulable: bool = False) -> Plan:
    """Plan to set missing labels and taints. Nodes that do not exist yet are skipped; other labels are not touched.

    :param nodes: names of the site's nodes; `control_plane` are those of its control plane.
    :param schedulable: whether control plane nodes run ordinary pods, and so need no taint.
    """
    steps: list[Step] = []
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    for node in api.list("v1", "Node"):
        name = str(node["metadata"]["name"])
        if name not in nodes:
            continue
        wanted = {HOSTNAME: name, **(LABELS if name in control_plane else {})}
        labels = node["metadata"].get("labels") or {}
        wrong = {key: value for key, value in wanted.items() if labels.get(key) != value}
        taints = _taints(node, name in control_plane and not schedulable)
        for key, value in wrong.items():
            subject = f"label {key} of node {name}"
            before[subject], after[subject] = labels.get(key, "missing"), value or "there"
        if taints:
            subject = f"taint {TAINT['key']}:{TAINT['effect']} of node {name}"
            before[subject], after[subject] = "missing", "there"
        if wrong or taints:
            steps.append(Step(f"Restore labels and taints of node {name}", partial(_mark, api, node, wrong, taints)))
    return Plan(steps, before, after)


def _taints(node: Object, wanted: bool) -> list[Mapping[str, Any]]:
    """Return all taints of the node plus the missing one; empty if none is missing."""
    taints = (node.get("spec") or {}).get("taints") or []
    there = any((each.get("key"), each.get("effect")) == (TAINT["key"], TAINT["effect"]) for each in taints)
    return [*taints, TAINT] if wanted and not there else []


def _mark(api: Api, node: Object, labels: Mapping[str, str], taints: Sequence[Mapping[str, Any]]) -> None:
    """Set labels and taints. The taint list is replaced as a whole, so the server refuses a node that changed since."""
    body: Object = {"metadata": {"resourceVersion": node["metadata"].get("resourceVersion"), "labels": dict(labels)}}
    if taints:
        body["spec"] = {"taints": list(taints)}
    name = node["metadata"]["name"]
    api.call("PATCH", api.path("v1", "Node", name=name), body=body, content_type=MERGE_PATCH, what=f"node {name}")
