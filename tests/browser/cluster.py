"""Nodes, runs and pods of a cluster in tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.browser.lines import TOTAL
from tests.browser.world import SPACE, Object, World

JOBSET = "jobset.x-k8s.io/v1alpha2"


class Cluster(World):
    """A world with what trainings need."""

    def node(
        self,
        name: str,
        *,
        ready: str = "True",
        cordoned: bool = False,
        gpus: int = 0,
        healthy: int | None = None,
        control: bool = False,
        skew: bool = False,
    ) -> None:
        labels = {"node-role.kubernetes.io/control-plane": ""} if control else {}
        offer: dict[str, str] = {}
        if gpus:
            offer = {"nvidia.com/gpu": str(gpus)}
            labels |= {
                "trainyard.dev/gpu": "skew" if skew else "ready",
                "nvidia.com/gpu.product": "Tesla-T4",
                "nvidia.com/gpu.memory": "15360",
                "nvidia.com/cuda.driver-version.full": "580.95.05",
                "nvidia.com/cuda.runtime-version.full": "13.0",
            }
        taints = [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}] if control else []
        if cordoned:
            taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
        has = {"cpu": "8", "memory": "32Gi", "pods": "110"}
        condition = {"type": "Ready", "status": ready, "lastTransitionTime": self.ago(86_000)}
        if ready != "True":
            condition["message"] = "Kubelet stopped posting node status."
        info = {
            "kubeletVersion": "v1.36.1",
            "containerRuntimeVersion": "containerd://2.2.1",
            "kernelVersion": "6.8.0-57-generic",
            "osImage": "Ubuntu 24.04.3 LTS",
        }
        self.add(
            "v1",
            "Node",
            "nodes",
            {"name": name, "labels": labels},
            spec={"taints": taints, **({"unschedulable": True} if cordoned else {})},
            status={
                "capacity": {**has, **offer},
                "nodeInfo": info,
                "conditions": [condition],
                "addresses": [{"type": "InternalIP", "address": f"10.0.0.{len(name)}{len(self.objects)}"}],
                "allocatable": {
                    **has,
                    **({"nvidia.com/gpu": str(gpus if healthy is None else healthy)} if gpus else {}),
                },
            },
        )
        self.add(
            "metrics.k8s.io/v1beta1",
            "NodeMetrics",
            "nodes",
            {"name": name},
            usage={
                "cpu": f"{1_200_000_000 + 400_000_000 * len(self.objects)}n",
                "memory": f"{5_000 + 900 * len(self.objects)}Mi",
            },
        )

    def run(
        self,
        name: str,
        roles: Mapping[str, int],
        *,
        workload: str = "mnist_ps",
        gpus: int = 0,
        ended: str = "",
        submitted: float = 600,
        flags: Mapping[str, Any] | None = None,
    ) -> None:
        given = {
            "train_steps": TOTAL,
            "batch_size": 64,
            "learning_rate": 0.001,
            "accuracy_bound": 0.95,
            **(flags or {}),
        }
        labels = {"app.kubernetes.io/managed-by": "trainyard", "trainyard.dev/run": name}
        notes = {
            "trainyard.dev/attempt": "20261122T115500Z",
            "trainyard.dev/workload": workload,
            "trainyard.dev/topology": "parameter_server",
            "trainyard.dev/deciding": "chief-0",
        }

        def job(role: str, count: int) -> Object:
            container = {
                "name": "tensorflow",
                "image": "registry.lab:5000/trainyard/tensorflow:2.21.0",
                "args": [f"--{key}={value}" for key, value in given.items()],
                "resources": {"limits": limits(role, gpus)},
                "volumeMounts": [{"name": "logs", "mountPath": "/logs"}],
            }
            volumes = [{"name": "logs", "persistentVolumeClaim": {"claimName": f"{name}-logs"}}]
            template = {"metadata": {"labels": labels}, "spec": {"containers": [container], "volumes": volumes}}
            return {"name": role, "replicas": 1, "template": {"spec": {"parallelism": count, "template": template}}}

        self.add(
            JOBSET,
            "JobSet",
            "jobsets",
            {
                "name": name,
                "namespace": SPACE,
                "labels": labels,
                "annotations": notes,
                "creationTimestamp": self.ago(submitted),
            },
            spec={"replicatedJobs": [job(role, count) for role, count in roles.items()]},
            status={"terminalState": ended} if ended else {},
        )

    def pod(
        self,
        run: str,
        role: str,
        index: int,
        node: str = "",
        *,
        state: Object | None = None,
        phase: str = "Running",
        gpus: int = 0,
        waits: str = "",
        **status: Any,
    ) -> str:
        name = f"{run}-{role}-0-{index}-{'abcdefgh'[index]}x9k2"
        labels = {
            "trainyard.dev/run": run,
            "trainyard.dev/role": role,
            "batch.kubernetes.io/job-completion-index": str(index),
        }
        container = {
            "name": "tensorflow",
            "resources": {"limits": limits(role, gpus), "requests": {"cpu": "1", "memory": "2Gi"}},
        }
        said: Object = {"phase": phase}
        if waits:
            said |= {
                "phase": "Pending",
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": waits}
                ],
            }
        else:
            said["containerStatuses"] = [
                {
                    "name": "tensorflow",
                    "restartCount": 0,
                    "state": state or {"running": {"startedAt": self.ago(580)}},
                    **status,
                }
            ]
        self.add(
            "v1",
            "Pod",
            "pods",
            {"name": name, "namespace": SPACE, "labels": labels},
            spec={"containers": [container], **({"nodeName": node} if node else {})},
            status=said,
        )
        return f"/api/v1/namespaces/{SPACE}/pods/{name}"


def limits(role: str, gpus: int) -> dict[str, str]:
    return {"cpu": "1", "memory": "2Gi", **({"nvidia.com/gpu": str(gpus)} if gpus and role == "worker" else {})}
