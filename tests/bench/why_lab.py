"""The lab and the run that a fault is injected into, and common parts of all faults."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from mishaps import Watched, container_of, until
from stand import NAMESPACE, Stand
from timed import BenchError

from trainyard.kube.api import Api, KubeError
from trainyard.kube.placement import left
from trainyard.trainings.jobset import run_object
from trainyard.trainings.model import Training
from trainyard.trainings.objects import surroundings
from trainyard.trainings.submit import new_attempt

Object = dict[str, Any]
MERGE = "application/merge-patch+json"
WORKER = "worker2"
"""The node for the faults."""
LIMIT = 180.0
SLEEP = ["sh", "-c", "trap 'exit 0' TERM; sleep 3600 & wait"]
"""A program that does nothing, and ends on SIGTERM."""
OWNER = {"app.kubernetes.io/managed-by": "trainyard", "trainyard.dev/proof": "why"}
"""Labels of objects that a fault adds to the cluster."""


@dataclass
class Scene:
    """A run on a running lab.

    :param attempt: attempt of the run, which names its folder.
    """

    stand: Stand
    run: Training
    attempt: str = ""
    made: list[Object] = field(default_factory=list)

    @property
    def api(self) -> Api:
        return self.stand.api

    def submit(self, around: Callable[[Scene], None], **changes: Any) -> None:
        """Create the run with its supporting objects.

        :param around: action on the supporting objects before the run is created.
        :param changes: changes of containers and pods, see `altered`.
        """
        self.attempt = new_attempt()
        for obj in surroundings(self.run):
            self.api.apply(obj)
        around(self)
        self.api.create(altered(run_object(self.run, self.attempt, "fresh"), **changes))

    def watched(self) -> Watched:
        return Watched(self.api, self.run, self.attempt)

    def until_it_trains(self) -> None:
        until(f"a step of {self.run.name}", lambda: self.watched().steps(), LIMIT)

    def put(self, *objects: Object) -> None:
        """Add objects to the cluster, which are removed with the fault."""
        for obj in objects:
            self.api.apply(obj)
            self.made.append(obj)

    def clean(self) -> None:
        """Remove the run and the added objects."""
        for version, kind in (("jobset.x-k8s.io/v1alpha2", "JobSet"), ("v1", "ConfigMap")):
            name = self.run.name if kind == "JobSet" else f"{self.run.name}-result"
            self.api.delete(version, kind, name, self.run.namespace)
        for obj in reversed(self.made):
            meta = obj["metadata"]
            self.api.delete(obj["apiVersion"], obj["kind"], meta["name"], meta.get("namespace"), grace=0)
        self.made.clear()
        until(f"the end of {self.run.name}", lambda: not self.watched().pods(), LIMIT)
        own = [each for each in surroundings(self.run) if each["kind"] in ("PersistentVolumeClaim", "PersistentVolume")]
        for obj in [*reversed(own), *(each for each in surroundings(self.run) if each["kind"] == "NetworkPolicy")]:
            meta = obj["metadata"]
            if meta["name"] != "default-deny":
                self.api.delete(obj["apiVersion"], obj["kind"], meta["name"], meta.get("namespace"))

    def patch(self, version: str, kind: str, name: str, body: Mapping[str, Any], namespace: str = "") -> None:
        path = self.api.path(version, kind, namespace or None, name)
        self.api.call("PATCH", path, body=body, content_type=MERGE, what=f"{kind} {name}")

    def scale(self, namespace: str, name: str, replicas: int) -> None:
        """Change the number of a Deployment's pods, and wait until that many are ready."""
        self.patch("apps/v1", "Deployment", name, {"spec": {"replicas": replicas}}, namespace)

        def there() -> bool:
            status = (self.api.get("apps/v1", "Deployment", name, namespace) or {}).get("status") or {}
            return (status.get("readyReplicas") or 0, status.get("replicas") or 0) == (replicas, replicas)

        until(f"{replicas} pods of {name}", there, LIMIT)

    def signal(self, role: str, signal: str) -> None:
        """Send a signal to a pod's process."""
        pod = self.watched().pod(role)
        kill = ("ctr", "--namespace=k8s.io", "tasks", "kill", f"--signal={signal}", container_of(pod))
        self.stand.on_node(pod["spec"]["nodeName"], *kill)

    def room(self, node: str) -> dict[str, float]:
        """Return the resources of a node that are available to pods now."""
        found = self.api.get("v1", "Node", node)
        if found is None:
            raise BenchError(f"There is no node {node}.")
        return left(found, self.api.list("v1", "Pod"))

    def filler(self, node: str, **asked: str) -> Object:
        """Return a pod of another run that holds resources of a node.

        :param asked: resource to quantity; `gpu` for a GPU.
        """
        labels = {**OWNER, "trainyard.dev/run": "why-holder", "trainyard.dev/role": "worker"}
        labels["batch.kubernetes.io/job-completion-index"] = "0"
        resources = {("nvidia.com/gpu" if name == "gpu" else name): it for name, it in asked.items()}
        image = next(iter(self.run.roles.values())).image
        security = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"why-holder-{node}", "namespace": NAMESPACE, "labels": labels},
            "spec": {
                "nodeSelector": {"kubernetes.io/hostname": node},
                "securityContext": {
                    "runAsNonRoot": True,
                    "runAsUser": 65532,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "terminationGracePeriodSeconds": 0,
                "containers": [
                    {
                        "name": "holder",
                        "image": image,
                        "command": SLEEP,
                        "resources": {"requests": resources, "limits": resources},
                        "securityContext": security,
                    }
                ],
            },
        }


def altered(
    run: Object,
    role: str = "worker",
    pod: Object | None = None,
    container: Object | None = None,
    asleep: Sequence[str] = (),
    places: Mapping[str, str] = MappingProxyType({}),
) -> Object:
    """Return the object that runs a training, with changes of its pods.

    :param role: role whose pods are changed by `pod` and `container`: keys of the specification, and of the container.
    :param asleep: roles whose programs only sleep, because nothing depends on them.
    :param places: role -> the node for its pods.
    """
    found = copy.deepcopy(run)
    for job in found["spec"]["replicatedJobs"]:
        spec = job["template"]["spec"]["template"]["spec"]
        if job["name"] in asleep:
            spec["containers"][0] |= {"command": SLEEP, "args": []}
        if job["name"] == role:
            spec |= pod or {}
            spec["containers"][0] |= container or {}
        if job["name"] in places:
            spec |= on(places[job["name"]])
    return found


def on(node: str) -> Object:
    """Return the selector for one node."""
    return {"nodeSelector": {"kubernetes.io/hostname": node}}


def asking(**quantities: str) -> Object:
    """Return the resources of a container."""
    return {"resources": {"requests": quantities, "limits": quantities}}


def gone(api: Api, version: str, kind: str, name: str, namespace: str) -> bool:
    try:
        return api.get(version, kind, name, namespace) is None
    except KubeError:
        return False
