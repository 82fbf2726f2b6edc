"""Ends the pods of trainings that hang on a node that is gone.

When a node loses its power, Kubernetes deletes its pods, but waits for the node to say that they have ended: they stay
Terminating, and the training that they belong to cannot go on. This program says it in the node's place, as the pod
garbage collector of Kubernetes does for nodes with the taint out-of-service: phase Failed with the condition
DisruptionTarget, then deletion at once. A pod that runs on behind a cut network is kept away from the training's files
by the lease of its run.

Runs in the cluster as a Deployment, with Python's standard library alone.

Environment:
  INTERVAL: seconds between two looks at the nodes.
"""

from __future__ import annotations

import json
import os
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
NAMESPACE_LABEL = "trainyard.dev/trainings=true"
"""Of namespaces in which trainings run; the role that this program has is bound there alone."""
POD_LABEL = "trainyard.dev/role"
CALL_SECONDS = 10.0
OVER = ("Succeeded", "Failed")

Object = Mapping[str, Any]


def gone(nodes: Sequence[Object]) -> set[str]:
    """Names of the nodes whose kubelet has gone silent: the node controller says Unknown, not False."""
    return {node["metadata"]["name"] for node in nodes if _ready(node) == "Unknown"}


def _ready(node: Object) -> str:
    conditions = (node.get("status") or {}).get("conditions") or []
    return next((str(each["status"]) for each in conditions if each["type"] == "Ready"), "")


def hanging(pods: Sequence[Object], lost: set[str]) -> list[Object]:
    """Pods on lost nodes that somebody has deleted."""
    return [pod for pod in pods if pod["spec"].get("nodeName") in lost and pod["metadata"].get("deletionTimestamp")]


def failed(pod: Object, now: datetime) -> dict[str, Any]:
    """A strategic merge patch of the status, by which the Job's failure policy knows a disruption.

    :param now: time of day in UTC.
    """
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByPodGC",
        "message": f"The node {pod['spec']['nodeName']} does not answer.",
        "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return {"status": {"phase": "Failed", "conditions": [condition]}}


class Api:
    """The API server as a pod sees it."""

    def __init__(self) -> None:
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
        self._base = f"https://{f'[{host}]' if ':' in host else host}:{port}"
        self._tls = ssl.create_default_context(cafile=f"{ACCOUNT}/ca.crt")

    def call(self, method: str, path: str, body: object = None) -> Any:
        """The answer to one call.

        :raises OSError: no answer, or a refusal; an object that is not there any more is None.
        """
        # Read anew: the kubelet replaces the token before it ends.
        with open(f"{ACCOUNT}/token", encoding="ascii") as stream:
            headers = {"Authorization": f"Bearer {stream.read().strip()}", "Accept": "application/json"}
        if method == "PATCH":
            headers["Content-Type"] = "application/strategic-merge-patch+json"
        elif body is not None:
            headers["Content-Type"] = "application/json"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._base + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=CALL_SECONDS, context=self._tls) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise


def collect(api: Any) -> list[str]:
    """One look; returns what was done, a line each. What the server refuses is a line, too, and the others are done."""
    lost = gone(api.call("GET", "/api/v1/nodes")["items"])
    if not lost:
        return []
    lines = []
    for namespace in api.call("GET", f"/api/v1/namespaces?labelSelector={NAMESPACE_LABEL}")["items"]:
        path = f"/api/v1/namespaces/{namespace['metadata']['name']}/pods"
        try:
            pods = hanging(api.call("GET", f"{path}?labelSelector={POD_LABEL}")["items"], lost)
        except OSError as error:
            lines.append(f"{namespace['metadata']['name']}: {error}")
            continue
        for pod in pods:
            name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']} on {pod['spec']['nodeName']}"
            try:
                end(api, f"{path}/{pod['metadata']['name']}", pod)
                lines.append(f"ended {name}")
            except OSError as error:
                lines.append(f"{name}: {error}")
    return lines


def end(api: Any, path: str, pod: Object) -> None:
    """Say in the node's place that the pod has ended, and delete it."""
    if (pod.get("status") or {}).get("phase") not in OVER:
        api.call("PATCH", f"{path}/status", failed(pod, datetime.now(UTC)))
    # The uid: never a pod that has taken the name since.
    api.call("DELETE", path, {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}})


def main() -> None:
    api = Api()
    while True:
        try:
            for line in collect(api):
                print(line, flush=True)
        except (OSError, ValueError) as error:
            print(f"The API server: {error}", flush=True)
        time.sleep(float(os.environ["INTERVAL"]))


if __name__ == "__main__":
    main()
