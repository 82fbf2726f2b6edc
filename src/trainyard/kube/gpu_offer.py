"""What a node offers of its GPUs, and waiting until it is what it should be.

A node's status is no sign of its plugin's life: the kubelet keeps the capacity for minutes after a plugin has gone, and
tells the API server every 10 s. So the plugin's own pod is looked at first, and then what pods can have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..core.clock import CLOCK, Clock
from ..core.errors import WaitError
from .api import Api, Object
from .quantities import pieces

GPU = "nvidia.com/gpu"
NAMESPACE = "kube-system"
SETTING = "trainyard.dev/gpu-setting"
"""Label of the plugin's objects, one value for each setting of sharing and MIG."""
REVISION = "controller-revision-hash"
"""Label of a DaemonSet's pods and revisions, set by Kubernetes."""

SETTLE = 12.0
"""Seconds that a node's answer has to stay the same: the kubelet tells it every 10."""
INTERVAL = 1.0


def offered(node: Object) -> tuple[int, int]:
    """GPUs of a node, healthy or not, and those that pods can have."""
    status = node.get("status") or {}
    capacity, allocatable = (pieces((status.get(what) or {}).get(GPU, 0)) for what in ("capacity", "allocatable"))
    return capacity, allocatable


@dataclass(frozen=True)
class Offer:
    """What was seen.

    :param pod: the plugin's pod and its start, by which one that was started again is another; empty for none.
    :param fault: why the plugin is not at work; empty if it is.
    :param ready_at: seconds since the epoch when the pod became ready.
    """

    capacity: int
    allocatable: int
    pod: str = ""
    fault: str = ""
    ready_at: float = 0.0


def observe(api: Api, node: str, setting: str) -> Offer:
    """Look at the node and its plugin.

    :param setting: value of the label `SETTING`.
    """
    capacity, allocatable = offered(api.get("v1", "Node", node) or {})
    labels = f"{SETTING}={setting}"
    pods = [
        pod
        for pod in api.list("v1", "Pod", NAMESPACE, labels=labels)
        if (pod.get("spec") or {}).get("nodeName") == node and not pod["metadata"].get("deletionTimestamp")
    ]
    if not pods:
        return Offer(capacity, allocatable, fault="the device plugin has no pod there")
    pod = max(pods, key=lambda each: str(each["metadata"].get("creationTimestamp")))
    name = pod["metadata"]["name"]
    ready: Object = next((each for each in _of(pod, "conditions") if each["type"] == "Ready"), {})
    starts = "/".join(str(each.get("restartCount", 0)) for each in _of(pod, "containerStatuses"))
    fault = "" if ready.get("status") == "True" else f"the pod {name} of the device plugin is not ready{_why(pod)}"
    if not all(map(_known, api.list("apps/v1", "DaemonSet", NAMESPACE, labels=labels))):
        fault = "the DaemonSet of the device plugin was changed just now"
    elif pod["metadata"]["labels"].get(REVISION) != _revision(api, labels):
        fault = f"the pod {name} of the device plugin is of an older version"
    return Offer(capacity, allocatable, f"{name}/{starts}", fault, _seconds(ready.get("lastTransitionTime")))


def wait_for_gpus(
    api: Api, node: str, setting: str, wanted: int, *, timeout: float, all_healthy: bool = False, clock: Clock = CLOCK
) -> Offer:
    """Wait until the node's plugin is at work, and the node offers what it should.

    :param wanted: GPUs, shares counted; 0 where only the plugin is waited for.
    :param timeout: limit in seconds.
    :param all_healthy: pods must be able to have all of them. Without it fewer are a result, too, once they have
        stayed so for `SETTLE` seconds: the plugin calls the others unhealthy.
    :raises WaitError: the limit was reached; says what the node offers, and why the plugin is not at work.
    """
    deadline = clock.monotonic() + timeout
    seen, since = observe(api, node, setting), clock.monotonic()
    while True:
        watched = clock.monotonic() - since
        settled = watched >= SETTLE
        # A pod that has been ready for so long has told the node's status what it has.
        fresh = not settled and clock.time() - seen.ready_at < SETTLE
        there = not seen.fault and (not wanted or seen.capacity == wanted)
        well = seen.allocatable == wanted or not wanted
        if there and ((well and not fresh) or (not well and settled and not all_healthy)):
            return seen
        if clock.monotonic() + INTERVAL > deadline:
            raise WaitError(
                f"After {timeout:.0f} s the node {node} offers {seen.allocatable} of {seen.capacity} GPUs to pods, and "
                f"should offer {wanted}{': ' + seen.fault if seen.fault else ''}.",
                remedy=f"kubectl --namespace {NAMESPACE} logs --selector {SETTING}={setting}",
            )
        clock.sleep(INTERVAL)
        now = observe(api, node, setting)
        if now != seen:
            seen, since = now, clock.monotonic()


def _of(pod: Mapping[str, Any], what: str) -> list[Any]:
    return (pod.get("status") or {}).get(what) or []


def _why(pod: Object) -> str:
    reasons = [each["state"]["waiting"].get("reason") for each in _of(pod, "containerStatuses") if _waits(each)]
    return f" ({', '.join(map(str, reasons))})" if reasons else ""


def _waits(container: Mapping[str, Any]) -> bool:
    return bool((container.get("state") or {}).get("waiting"))


def _known(daemonset: Object) -> bool:
    """Whether Kubernetes has seen the last change; only then there is a revision for it."""
    return bool((daemonset.get("status") or {}).get("observedGeneration") == daemonset["metadata"].get("generation"))


def _revision(api: Api, labels: str) -> str:
    """The newest version of the plugin's DaemonSet."""
    revisions = api.list("apps/v1", "ControllerRevision", NAMESPACE, labels=labels)
    newest = max(revisions, key=lambda each: int(each["revision"]), default=None)
    return str(newest["metadata"]["labels"].get(REVISION)) if newest else ""


def _seconds(timestamp: str | None) -> float:
    return datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp() if timestamp else 0.0
