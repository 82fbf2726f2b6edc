"""The state of hosts in the cluster, before and after a repair: their trainings, their nodes and pods."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime

from ..core.clock import CLOCK, Clock
from ..core.errors import TrainyardError, WaitError
from ..core.waiter import wait_until
from ..kube.api import Api, KubeError
from ..trainings import found
from ..trainings.names import NAME_LABEL, ROLE_LABEL, RUNS
from ..verify.cluster import condition, pod_trouble
from . import stopping

READY_SECONDS = 360.0
"""Limit for a node and its pods to recover. Before the kubelet restarts a failing container, it waits at most five
minutes (MaxContainerBackOff). After that the container has to become Ready."""

LOOK_AGAIN_SECONDS = 5.0


def training(api: Api, nodes: Mapping[str, str]) -> set[str]:
    """Return the hosts that hold a pod of a running training.

    :param nodes: host -> name of its node.
    :raises KubeError: the cluster does not answer, or refuses.
    """
    going = {
        place for place, run in found.runs(api).items() if run.goes_on and run.live and run.live.get("kind") in RUNS
    }
    holding = set()
    for pod in api.list("v1", "Pod", labels=ROLE_LABEL):
        place = (pod["metadata"]["namespace"], (pod["metadata"].get("labels") or {}).get(NAME_LABEL, ""))
        if place in going and (pod.get("status") or {}).get("phase") in ("Pending", "Running"):
            holding.add(pod["spec"].get("nodeName"))
    return {host for host, node in nodes.items() if node in holding}


def why_not_ready(api: Api, node: str, namespaces: Collection[str], now: datetime) -> str:
    """Return why a node or one of the system's pods on it is not Ready, as a clause; empty if all are.

    :param namespaces: of the system's pods.
    :param now: for the age of pods.
    """
    try:
        live = api.get("v1", "Node", node)
    except KubeError as error:
        return f"the state of the node {node} is unknown: {error.message.rstrip('.')}"
    if live is None:
        return f"the node {node} is not in the cluster"
    if condition(live, "Ready") != "True":
        return f"the node {node} is not Ready"
    return why_pods_fail(api, namespaces, now, node)


def why_pods_fail(api: Api, namespaces: Collection[str], now: datetime, node: str = "") -> str:
    """Return which of the system's pods is unhealthy, and why; empty if all are healthy.

    :param node: limits the check to the pods of one node; empty for all nodes.
    """
    try:
        pods = [pod for space in sorted(namespaces) for pod in api.list("v1", "Pod", space)]
    except KubeError as error:
        return f"the state of the system's pods is unknown: {error.message.rstrip('.')}"
    for pod in pods:
        if node in ("", pod["spec"].get("nodeName")) and (trouble := pod_trouble(pod, now)):
            return f"{pod['metadata']['namespace']}/{pod['metadata']['name']} {trouble}"
    return ""


def wait_for_node(
    connected: Callable[[], Api], node: str, namespaces: Collection[str], clock: Clock = CLOCK,
    seconds: float = READY_SECONDS,
) -> str:  # fmt: skip
    """Wait until a node and its pods are healthy. Return why they are not after `seconds`, or nothing."""
    return _wait(lambda now: why_not_ready(connected(), node, namespaces, now), "its repair", clock, seconds)


def wait_for_pods(
    connected: Callable[[], Api], namespaces: Collection[str], clock: Clock = CLOCK, seconds: float = READY_SECONDS
) -> str:
    """Wait until the system's pods are healthy on all nodes. Return why they are not after `seconds`, or nothing."""
    return _wait(lambda now: why_pods_fail(connected(), namespaces, now), "an interrupted repair", clock, seconds)


def _wait(why_not: Callable[[datetime], str], after: str, clock: Clock, seconds: float) -> str:
    try:
        why = wait_until(
            lambda: why_not(datetime.fromtimestamp(clock.time(), UTC)),
            lambda why: not why or stopping.told(),
            what="the system's pods",
            timeout=seconds,
            interval=LOOK_AGAIN_SECONDS,
            clock=clock,
        )
    except WaitError as error:
        return f"{error.facts['last_state']} {max(seconds, 0):.0f} s after {after}"
    except TrainyardError as error:
        return error.message.rstrip(".")
    return f"{stopping.WORDS}: {why}" if why else ""
