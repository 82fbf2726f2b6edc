"""Emptying a node: cordon it, evict its pods through the Eviction API, and never take what is left for gone.

A pod disruption budget answers an eviction with 429; the eviction is tried again until the limit. Pods that are left
then are an error with their names, and a cordon that this drain has made is taken back.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..core.errors import TrainyardError, WaitError
from ..core.plan import Plan, Step
from .api import Api, KubeError, Object

CORDON = "trainyard.dev/cordoned"
"""Annotation on a node that `drain` has cordoned; a node that somebody else has cordoned lacks it and stays so."""

MIRROR = "kubernetes.io/config.mirror"
"""Annotation of a static pod's image in the API; the kubelet makes it anew whatever is done to it."""

MERGE_PATCH = "application/merge-patch+json"
LOOK_AGAIN_SECONDS = 2.0


@dataclass(frozen=True)
class Drain:
    """What to drain.

    :param node: name of the node.
    :param delete_empty_dir: evict pods with `emptyDir` volumes on disk, whose data is lost.
    :param timeout: limit in seconds for all pods to be gone.
    """

    node: str
    delete_empty_dir: bool = False
    timeout: float = 300.0


def plan_drain(api: Api, drain: Drain) -> Plan:
    """The steps that leave no pod on the node but those of DaemonSets and static ones.

    :raises TrainyardError: there is no such node, or a pod's data would be lost that may not be.
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
    """The step that keeps new pods away and leaves those that are there; none where somebody has cordoned it before."""
    cordoned = bool(_node(api, name).get("spec", {}).get("unschedulable"))
    steps = [] if cordoned else [Step(f"Cordon {name}", partial(_set_cordon, api, name, True))]
    return Plan(steps, {"cordoned": cordoned}, {"cordoned": True})


def plan_uncordon(api: Api, name: str) -> Plan:
    """The step that makes a node schedulable again; none unless one of these plans had cordoned it."""
    node = _node(api, name)
    ours = CORDON in (node["metadata"].get("annotations") or {})
    steps = [Step(f"Uncordon {name}", partial(_set_cordon, api, name, False))] if ours else []
    cordoned = bool(node.get("spec", {}).get("unschedulable"))
    return Plan(steps, {"cordoned": cordoned}, {"cordoned": cordoned and not ours})


def evictable(pods: Sequence[Object]) -> list[Object]:
    """The pods that a drain must move: neither static, nor of a DaemonSet, nor ended."""
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
            f"Pods keep data in emptyDir volumes, which an eviction deletes: {', '.join(holding)}.",
            remedy="Set delete_empty_dir to true if it may be lost.",
        )


def _on_disk(volume: Mapping[str, Any]) -> bool:
    return "emptyDir" in volume and (volume["emptyDir"] or {}).get("medium") != "Memory"


def _node(api: Api, name: str) -> Object:
    node = api.get("v1", "Node", name)
    if node is None:
        raise TrainyardError(f"The cluster has no node {name}.", remedy="Name a node as `kubectl get nodes` shows it.")
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
    """Evict until nothing is left, or take the own cordon back and name what is.

    :raises WaitError: pods are left at the limit; `facts['pods']` names them.
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
            # The first error says why the drain failed, and is the one to act on.
            error.message += f" {drain.node} is still cordoned: {second.message}"
            error.remedy = f"{error.remedy} Then uncordon {drain.node}.".strip()
            raise error from second
        raise


def _left_error(drain: Drain, left: Sequence[Object], refused: Mapping[str, str]) -> WaitError:
    names = [pod_name(pod) for pod in left]
    shown = [f"{name} ({refused[name]})" if name in refused else f"{name} (is still ending)" for name in names]
    return WaitError(
        f"After {drain.timeout:.0f} s {drain.node} still has pods: {'; '.join(shown)}.",
        remedy="Let their pod disruption budgets allow it, for instance with another replica, or wait longer.",
        pods=names,
    )


def _evict(api: Api, pod: Mapping[str, Any]) -> str:
    """Ask for one eviction; why it was refused for now, or nothing when the pod is going or gone.

    :raises KubeError: any other refusal than a budget's.
    """
    meta = pod["metadata"]
    if meta.get("deletionTimestamp"):
        return ""
    place = {"name": meta["name"], "namespace": meta["namespace"]}
    path = f"{api.path('v1', 'Pod', meta['namespace'], meta['name'])}/eviction"
    # Of the same name another pod may stand there by now, on another node.
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
        # 0, 429 and the like: tried again within the drain's limit.
        if error.transient:
            return error.message.rstrip(".")
        raise
    return ""
