"""Compare nodes with the inventory: missing nodes, unknown nodes, and nodes with a cordon or an unknown taint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..core.finding import Finding
from ..kube.api import Object
from ..kube.drain import CORDON
from ..kube.node_marks import CONTROL_PLANE

OF_KUBERNETES = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""Prefixes of taints that the controller manager sets and removes by itself."""


def node_findings(nodes: Sequence[Object], wanted: Sequence[str], control_plane: Sequence[str]) -> Iterator[Finding]:
    """Yield the differences of nodes from the inventory that no role repairs.

    :param nodes: Node objects of the cluster.
    :param wanted: names of the nodes of the inventory; `control_plane` has those of its control plane.
    """
    there = {str(node["metadata"]["name"]): node for node in nodes}
    for name in wanted:
        if name not in there:
            yield Finding(f"Node {name}", "missing", "in the cluster")
    for name, node in sorted(there.items()):
        if name not in wanted:
            yield Finding(f"Node {name}", "in the cluster", "unknown to the inventory")
            continue
        yield from _kept_free(name, node, name in control_plane)


def _kept_free(name: str, node: Object, of_control_plane: bool) -> Iterator[Finding]:
    spec = node.get("spec") or {}
    if spec.get("unschedulable"):
        ours = CORDON in (node["metadata"].get("annotations") or {})
        who = "by a drain of trainyard that did not end" if ours else "by hand"
        yield Finding(f"cordon of node {name}", f"cordoned {who}", "schedulable")
    for taint in spec.get("taints") or []:
        key, effect = str(taint.get("key")), str(taint.get("effect"))
        if key.startswith(OF_KUBERNETES) or (of_control_plane and key == CONTROL_PLANE):
            continue
        yield Finding(f"taint {key}:{effect} of node {name}", str(taint.get("value") or "set"), "no taint")
