"""Check that a node still starts pods after a repair. Running pods do not prove this.

The check creates a pod on the node and deletes it. It bypasses the scheduler, so a cordon or a taint does not matter.
The pod uses the pause image, which each node has.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress

from ..core.clock import CLOCK, Clock
from ..core.errors import WaitError
from ..core.waiter import wait_until
from ..kube.api import Api, KubeError, Object
from ..kube.patient import PatientApi
from ..trainings.names import MANAGED
from . import stopping

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
            phase, lambda now: now in ("Running", "Failed") or stopping.told(), what="a new pod to run",
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
    if stopping.told():
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
