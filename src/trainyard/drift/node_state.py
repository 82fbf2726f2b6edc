"""The state of hosts in the cluster, before and after a repair: their trainings, nodes and pods.

Parts: trainings, nodes and pods of hosts; the check that a node still starts pods after a repair.

Running pods do not prove that a node starts pods. So the check creates a pod on the node and deletes it. It bypasses
the scheduler, so a cordon or a taint does not matter. The pod uses the pause image, which each node has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from datetime import UTC, datetime

from ..core.errors import TrainyardError, WaitError
from ..core.waiter import CLOCK, Clock, wait_until
from ..kube.api import Api, KubeError, Object
from ..kube.apply import PatientApi
from ..trainings import run_index
from ..trainings.names import MANAGED, NAME_LABEL, ROLE_LABEL, RUNS
from ..verify.cluster_checks import condition, pod_trouble
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
        place for place, run in run_index.runs(api).items() if run.goes_on and run.live and run.live.get("kind") in RUNS
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
            lambda why: not why or stopping.requested(),
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


NAMESPACE = "kube-system"
LABEL = "trainyard.dev/start-probe"
SECONDS = 120.0
"""Limit for the start of a pod whose image is present; it takes two or three seconds."""


def pod(node: str, image: str) -> Object:
    """Return the pod. It requests no resources and runs until it is deleted, so a leftover pod does no harm."""
    name = f"start-probe-{hashlib.sha256(node.encode()).hexdigest()[:12]}"
    container = {
        "name": "pause",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    spec = {
        "nodeName": node,
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 1,
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
    }
    meta = {"name": name, "namespace": NAMESPACE, "labels": {**MANAGED, LABEL: "yes"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def why_not(api: Api, node: str, image: str, clock: Clock = CLOCK, seconds: float = SECONDS) -> str:
    """Return why a node starts no pod, as a clause; empty if it does.

    :param image: of the pod.
    :param seconds: limit for its start.
    """
    api, wanted = PatientApi(api, clock), pod(node, image)
    name = wanted["metadata"]["name"]
    last: Object = {}

    def phase() -> str:
        last.update(api.get("v1", "Pod", name, NAMESPACE) or {})
        return str((last.get("status") or {}).get("phase", "Unknown"))

    try:
        # A pod that a killed run has left does not prove the present state of the node.
        clear(api, node)
        api.create(wanted)
        found = wait_until(
            phase, lambda now: now in ("Running", "Failed") or stopping.requested(), what="a new pod to run",
            timeout=seconds, clock=clock,
        )  # fmt: skip
    except WaitError as error:
        found = str(error.facts["last_state"])
    except KubeError as error:
        return f"no pod could be created on {node}: {error.message.rstrip('.')}"
    finally:
        said = _said(api, last) if last and (last.get("status") or {}).get("phase") != "Running" else ""
        with suppress(KubeError):
            api.delete("v1", "Pod", name, NAMESPACE)
    if found == "Running":
        return ""
    if stopping.requested():
        return stopping.WORDS
    return f"no new pod starts on {node}: it is {found}{said}"


def clear(api: Api, node: str = "") -> None:
    """Delete the pods that killed runs have left.

    :param node: name of the node; empty for all nodes.
    :raises KubeError: the cluster does not answer, or refuses.
    """
    left = [each for each in api.list("v1", "Pod", NAMESPACE, labels=LABEL) if node in ("", each["spec"]["nodeName"])]
    for each in left:
        api.delete("v1", "Pod", each["metadata"]["name"], NAMESPACE, grace=0)


def _said(api: Api, obj: Object) -> str:
    """Return the last warning event of a pod in parentheses; empty without one."""
    try:
        events = api.list("v1", "Event", NAMESPACE)
    except KubeError:
        return ""
    mine = [each for each in events if (each.get("involvedObject") or {}).get("uid") == obj["metadata"]["uid"]]
    warned = [each for each in mine if each.get("type") == "Warning"]
    last = max(warned, key=lambda each: str(each.get("lastTimestamp") or each.get("eventTime") or ""), default={})
    return f" ({last['message']})" if last.get("message") else ""
