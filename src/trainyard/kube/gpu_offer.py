"""Read the GPUs that a node offers, and wait until it offers the expected number.

A node's status does not prove that its device plugin works. The kubelet keeps the capacity for minutes after a plugin
has gone, and reports to the API server only every 10 s. So the plugin's pod is checked before the node's status.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..core.errors import WaitError
from ..core.waiter import CLOCK, Clock
from .api import Api, Object
from .placement import pieces

GPU = "nvidia.com/gpu"
NAMESPACE = "kube-system"
SETTING = "trainyard.dev/gpu-setting"
"""Label of the plugin's objects, with one value for each combination of sharing and MIG settings."""
REVISION = "controller-revision-hash"
"""Label of a DaemonSet's pods and revisions, set by Kubernetes."""

SETTLE = 12.0
"""Seconds for which a node's status must stay the same, because the kubelet reports it every 10 s."""
INTERVAL = 1.0


def offered(node: Object) -> tuple[int, int]:
    """Return the number of GPUs of a node, healthy or not, and the number that pods can use."""
    status = node.get("status") or {}
    capacity, allocatable = (pieces((status.get(what) or {}).get(GPU, 0)) for what in ("capacity", "allocatable"))
    return capacity, allocatable


@dataclass(frozen=True)
class Offer:
    """The observed state of a node's GPUs and device plugin.

    :param capacity: GPUs of the node; `allocatable` are those that pods can use.
    :param pod: name and restart counts of the plugin's pod, so that a restarted pod differs; empty if there is none.
    :param fault: why the plugin is not working; empty if it is.
    :param ready_at: seconds since the epoch when the pod became ready.
    """

    capacity: int
    allocatable: int
    pod: str = ""
    fault: str = ""
    ready_at: float = 0.0


def observe(api: Api, node: str, setting: str) -> Offer:
    """Read the state of the node and its plugin.

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
        return Offer(capacity, allocatable, fault="the device plugin has no pod on this node")
    pod = max(pods, key=lambda each: str(each["metadata"].get("creationTimestamp")))
    name = pod["metadata"]["name"]
    ready: Object = next((each for each in _of(pod, "conditions") if each["type"] == "Ready"), {})
    starts = "/".join(str(each.get("restartCount", 0)) for each in _of(pod, "containerStatuses"))
    fault = "" if ready.get("status") == "True" else f"the pod {name} of the device plugin is not ready{_why(pod)}"
    if not all(map(_known, api.list("apps/v1", "DaemonSet", NAMESPACE, labels=labels))):
        fault = "Kubernetes has not processed the last change of the device plugin's DaemonSet yet"
    elif pod["metadata"]["labels"].get(REVISION) != _revision(api, labels):
        fault = f"the pod {name} of the device plugin has an older version"
    return Offer(capacity, allocatable, f"{name}/{starts}", fault, _seconds(ready.get("lastTransitionTime")))


def wait_for_gpus(
    api: Api, node: str, setting: str, wanted: int, *, timeout: float, all_healthy: bool = False, clock: Clock = CLOCK
) -> Offer:
    """Wait until the node's plugin works and the node offers the expected GPUs.

    :param wanted: number of GPUs, counting shares; 0 to wait for the plugin only.
    :param timeout: limit in seconds.
    :param all_healthy: require that pods can use all GPUs. Otherwise fewer are accepted once the number has been stable
        for `SETTLE` seconds, because the plugin considers the rest unhealthy.
    :raises WaitError: the limit was reached; the message contains the offer and the fault of the plugin.
    """
    deadline = clock.monotonic() + timeout
    seen, since = observe(api, node, setting), clock.monotonic()
    while True:
        watched = clock.monotonic() - since
        settled = watched >= SETTLE
        # After `SETTLE` seconds of readiness, the node's status includes what the pod reported.
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
    """Return whether Kubernetes has processed the last change; only then does a revision exist for it."""
    return bool((daemonset.get("status") or {}).get("observedGeneration") == daemonset["metadata"].get("generation"))


def _revision(api: Api, labels: str) -> str:
    """Return the newest revision of the plugin's DaemonSet."""
    revisions = api.list("apps/v1", "ControllerRevision", NAMESPACE, labels=labels)
    newest = max(revisions, key=lambda each: int(each["revision"]), default=None)
    return str(newest["metadata"]["labels"].get(REVISION)) if newest else ""


def _seconds(timestamp: str | None) -> float:
    return datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp() if timestamp else 0.0
