"""Nodes of a cluster: drain them, set the labels and the taint that identify them, and find taken node ports.

A drain cordons a node, evicts its pods through the Eviction API, and waits until they are gone. If a pod disruption
budget refuses an eviction (429), the drain retries it until the timeout. If pods remain then, the drain fails with
their names and removes the cordon that it set.

kubeadm and the kubelet set labels and the taint only once, so the second part repairs them.

The API server gives each node port of a Service to only one Service across all namespaces.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..core.errors import TrainyardError, WaitError
from ..core.plan import Plan, Step
from .api import Api, KubeError, Object

CORDON = "trainyard.dev/cordoned"
"""Annotation on a node that `drain` cordoned. A node that a user cordoned lacks it and stays cordoned."""

MIRROR = "kubernetes.io/config.mirror"
"""Annotation of a static pod's mirror pod; the kubelet always recreates it."""

MERGE_PATCH = "application/merge-patch+json"
LOOK_AGAIN_SECONDS = 2.0


@dataclass(frozen=True)
class Drain:
    """Parameters of a drain.

    :param node: name of the node.
    :param delete_empty_dir: evict pods with `emptyDir` volumes on disk, although their data is lost.
    :param timeout: limit in seconds until all pods are gone.
    """

    node: str
    delete_empty_dir: bool = False
    timeout: float = 300.0


def plan_drain(api: Api, drain: Drain) -> Plan:
    """Plan to remove all pods from the node except static ones and those of DaemonSets.

    :raises TrainyardError: the node does not exist, or a pod's data would be lost and `delete_empty_dir` is false.
    """
    node = _node(api, drain.node)
    pods = evictable(_pods(api, drain.node))
    if not drain.delete_empty_dir:
        _refuse_lost_data(pods)
    cordoned = bool(node.get("spec", {}).get("unschedulable"))
    steps = [] if cordoned else [Step(f"Cordon {drain.node}", partial(_set_cordon, api, drain.node, True))]
    names = [pod_name(pod) for pod in pods]
    if pods:
        steps.append(Step(f"Evict {', '.join(names)}", partial(_evict_all, api, drain)))
    return Plan(steps, {"cordoned": cordoned, "pods": names}, {"cordoned": True, "pods": []})


def plan_cordon(api: Api, name: str) -> Plan:
    """Plan to cordon a node, which keeps its pods; no step if it is already cordoned."""
    cordoned = bool(_node(api, name).get("spec", {}).get("unschedulable"))
    steps = [] if cordoned else [Step(f"Cordon {name}", partial(_set_cordon, api, name, True))]
    return Plan(steps, {"cordoned": cordoned}, {"cordoned": True})


def plan_uncordon(api: Api, name: str) -> Plan:
    """Plan to make a node schedulable again; no step unless one of these plans cordoned it."""
    node = _node(api, name)
    ours = CORDON in (node["metadata"].get("annotations") or {})
    steps = [Step(f"Uncordon {name}", partial(_set_cordon, api, name, False))] if ours else []
    cordoned = bool(node.get("spec", {}).get("unschedulable"))
    return Plan(steps, {"cordoned": cordoned}, {"cordoned": cordoned and not ours})


def evictable(pods: Sequence[Object]) -> list[Object]:
    """Return the pods that a drain must evict: those that are not static, not of a DaemonSet and not ended."""
    return [pod for pod in pods if not _stays(pod)]


def pod_name(pod: Mapping[str, Any]) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _stays(pod: Mapping[str, Any]) -> bool:
    meta = pod["metadata"]
    owners = [owner["kind"] for owner in meta.get("ownerReferences") or [] if owner.get("controller")]
    ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return MIRROR in (meta.get("annotations") or {}) or "DaemonSet" in owners or ended


def _refuse_lost_data(pods: Sequence[Object]) -> None:
    holding = [pod_name(pod) for pod in pods if any(_on_disk(each) for each in pod["spec"].get("volumes") or [])]
    if holding:
        raise TrainyardError(
            f"An eviction would delete the data in the emptyDir volumes of these pods: {', '.join(holding)}.",
            remedy="Set delete_empty_dir to true if the data may be lost.",
        )


def _on_disk(volume: Mapping[str, Any]) -> bool:
    return "emptyDir" in volume and (volume["emptyDir"] or {}).get("medium") != "Memory"


def _node(api: Api, name: str) -> Object:
    node = api.get("v1", "Node", name)
    if node is None:
        raise TrainyardError(f"The cluster has no node {name}.", remedy="Use a name that `kubectl get nodes` lists.")
    return node


def _pods(api: Api, node: str) -> list[Object]:
    return [pod for pod in api.list("v1", "Pod") if (pod.get("spec") or {}).get("nodeName") == node]


def _set_cordon(api: Api, name: str, cordon: bool) -> None:
    body = {
        "metadata": {"annotations": {CORDON: "true" if cordon else None}},
        "spec": {"unschedulable": True if cordon else None},
    }
    api.call("PATCH", api.path("v1", "Node", name=name), body=body, content_type=MERGE_PATCH, what=f"node {name}")


def _evict_all(api: Api, drain: Drain) -> None:
    """Evict until no pods are left. On failure, remove the cordon that the drain set.

    :raises WaitError: pods are left after the timeout; `facts['pods']` lists them.
    """
    deadline = time.monotonic() + drain.timeout
    try:
        while left := evictable(_pods(api, drain.node)):
            refused = {pod_name(pod): why for pod in left if (why := _evict(api, pod))}
            if time.monotonic() + LOOK_AGAIN_SECONDS > deadline:
                raise _left_error(drain, left, refused)
            time.sleep(LOOK_AGAIN_SECONDS)
    except TrainyardError as error:
        try:
            plan_uncordon(api, drain.node).execute()
        except TrainyardError as second:
            # Raise the first error: it is the cause of the failed drain.
            error.message += f" {drain.node} is still cordoned: {second.message}"
            error.remedy = f"{error.remedy} Then uncordon {drain.node}.".strip()
            raise error from second
        raise


def _left_error(drain: Drain, left: Sequence[Object], refused: Mapping[str, str]) -> WaitError:
    names = [pod_name(pod) for pod in left]
    shown = [f"{name} ({refused[name]})" if name in refused else f"{name} (still terminating)" for name in names]
    return WaitError(
        f"After {drain.timeout:.0f} s {drain.node} still has pods: {'; '.join(shown)}.",
        remedy="Let their pod disruption budgets allow it, for example with another replica, or raise the timeout.",
        pods=names,
    )


def _evict(api: Api, pod: Mapping[str, Any]) -> str:
    """Request one eviction; return why it was refused for now, or an empty text if the pod is terminating or gone.

    :raises KubeError: a refusal that is not transient.
    """
    meta = pod["metadata"]
    if meta.get("deletionTimestamp"):
        return ""
    place = {"name": meta["name"], "namespace": meta["namespace"]}
    path = f"{api.path('v1', 'Pod', meta['namespace'], meta['name'])}/eviction"
    # A pod of the same name may exist on another node by now; the UID keeps it safe.
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": place,
        "deleteOptions": {"preconditions": {"uid": meta["uid"]}},
    }
    try:
        api.call("POST", path, body=body, what=f"eviction of {pod_name(pod)}")
    except KubeError as error:
        if error.status in (404, 409):
            return ""
        # Statuses such as 0 and 429 are retried until the drain's timeout.
        if error.transient:
            return error.message.rstrip(".")
        raise
    return ""


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


def taken_ports(services: Sequence[Object], wanted: Mapping[str, int], owner: str) -> list[str]:
    """Return one sentence for each wanted port that another Service holds.

    :param services: Services of all namespaces.
    :param wanted: variable that sets the port -> the port.
    :param owner: NAMESPACE/NAME of the Service that the ports are for; it may already hold them.
    """
    held = {port: name for each in services if (name := _name(each)) != owner for port in held_by(each)}
    return [
        f"The port {port} of the nodes ({variable}) is held by the Service {held[port]}. Set {variable} to another "
        "port, or remove that Service."
        for variable, port in wanted.items()
        if port in held
    ]


def held_by(service: Mapping[str, Any]) -> Iterator[int]:
    """Yield the node ports that a Service holds, including that of its health check."""
    spec = service.get("spec") or {}
    ports = [each.get("nodePort") for each in spec.get("ports") or []]
    yield from (int(port) for port in (*ports, spec.get("healthCheckNodePort")) if port)


def _name(service: Mapping[str, Any]) -> str:
    return f"{service['metadata']['namespace']}/{service['metadata']['name']}"
