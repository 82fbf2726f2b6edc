"""Faults of servers, injected into a running training, and the output of its chiefs."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from timed import BenchError

from trainyard.kube.api import Api, KubeError
from trainyard.trainings.log_events import events
from trainyard.trainings.model import Training
from trainyard.trainings.names import INDEX_LABEL, NAME_LABEL, ROLE_LABEL

Pod = Mapping[str, Any]


@dataclass
class Watched:
    """A run with all output of its chiefs so far.

    :param attempt: attempt at the run.
    """

    api: Api
    run: Training
    attempt: str = ""
    said: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def look(self) -> list[dict[str, Any]]:
        """Return all events of all chiefs, sorted by their clocks, which are this machine's."""
        for pod in self.pods("chief"):
            name = pod["metadata"]["name"]
            try:
                text = self.api.log(self.run.namespace, name)
            except KubeError:
                continue  # not started, gone, or its node does not answer
            found = events(text)
            if len(found) > len(self.said.get(name, [])):
                self.said[name] = found
        return sorted((event for each in self.said.values() for event in each), key=lambda event: event.get("time", 0))

    def steps(self) -> list[dict[str, Any]]:
        return [event for event in self.look() if event["event"] == "step"]

    def pods(self, role: str = "") -> list[Pod]:
        labels = f"{NAME_LABEL}={self.run.name}" + (f",{ROLE_LABEL}={role}" if role else "")
        return self.api.list("v1", "Pod", self.run.namespace, labels=labels)

    def pod(self, role: str, apart: bool = False) -> Pod:
        """Return the running pod of a role with the lowest index.

        :param apart: whether to consider only nodes without a chief.
        """
        running = [pod for pod in self.pods(role) if (pod.get("status") or {}).get("phase") == "Running"]
        if apart:
            nodes = {pod["spec"].get("nodeName") for pod in self.pods("chief")}
            running = [pod for pod in running if pod["spec"]["nodeName"] not in nodes]
        if not running:
            raise BenchError(f"No {role} of {self.run.name} runs{' on a node without a chief' if apart else ''}.")
        return min(running, key=lambda pod: int(pod["metadata"]["labels"][INDEX_LABEL]))

    def status(self) -> Mapping[str, Any]:
        found = self.api.get("jobset.x-k8s.io/v1alpha2", "JobSet", self.run.name, self.run.namespace)
        return (found or {}).get("status") or {}


def until(what: str, true: Callable[[], Any], limit: float, pause: float = 0.5) -> Any:
    deadline = time.monotonic() + limit
    while not (found := true()):
        if time.monotonic() > deadline:
            raise BenchError(f"{what} did not happen within {limit:.0f} s.")
        time.sleep(pause)
    return found


def node_container(lab: str, pod: Pod) -> str:
    return f"{lab}-{pod['spec']['nodeName']}"


def container_of(pod: Pod) -> str:
    """Return the id of a pod's container on its node."""
    return str(pod["status"]["containerStatuses"][0]["containerID"]).removeprefix("containerd://")


def kill(watched: Watched, lab: str, role: str) -> Pod:
    """End the pod's process by signal 9, as the kernel does when memory is short."""
    pod = watched.pod(role)
    end = ["ctr", "--namespace=k8s.io", "tasks", "kill", "--signal=SIGKILL", container_of(pod)]
    subprocess.run(["podman", "exec", node_container(lab, pod), *end], check=True, timeout=60)
    # A JobSet that restarts immediately removes the pod.
    until(f"the end of {pod['metadata']['name']}", lambda: ended(watched, pod) in (137, -1), 60)
    return pod


def ended(watched: Watched, pod: Pod) -> int | None:
    """Return the exit code of a pod, -1 if it is gone, None while it runs."""
    found = watched.api.get("v1", "Pod", pod["metadata"]["name"], watched.run.namespace)
    if found is None or found["metadata"]["uid"] != pod["metadata"]["uid"]:
        return -1
    for status in (found.get("status") or {}).get("containerStatuses") or []:
        if "terminated" in status["state"]:
            return int(status["state"]["terminated"]["exitCode"])
    return None


def evict(watched: Watched, lab: str, role: str) -> Pod:
    """Evict a pod as a drain does, on any node."""
    pod = watched.pod(role)
    meta = pod["metadata"]
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
        "deleteOptions": {"preconditions": {"uid": meta["uid"]}},
    }
    path = (
        watched.api.object_path(pod)
        if "kind" in pod
        else watched.api.path("v1", "Pod", meta["namespace"], meta["name"])
    )
    watched.api.call("POST", f"{path}/eviction", body=body, what="eviction")
    until(f"the end of {meta['name']}", lambda: ended(watched, pod) is not None, 60)
    if ended(watched, pod) not in (42, -1):
        raise BenchError(f"{meta['name']} ended with {ended(watched, pod)}, not with 42.")
    return pod


def switch_off(watched: Watched, lab: str, role: str, apart: bool = False) -> Pod:
    """Cut the power of the node of a role's pod.

    :param apart: whether to take a node without a chief.
    """
    pod = watched.pod(role, apart)
    name = node_container(lab, pod)
    subprocess.run(["podman", "kill", "--signal=KILL", name], check=True, timeout=60, capture_output=True)
    state = ["podman", "inspect", "--format={{.State.Running}}", name]
    told = subprocess.run(state, check=True, capture_output=True, text=True, timeout=60).stdout
    if told.strip() != "false":
        raise BenchError(f"{name} still runs.")
    return pod
