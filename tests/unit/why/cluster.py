"""The cluster round a run in hand-made snapshots: nodes, the system, pods of others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

Object = dict[str, Any]
NOW = datetime(2026, 11, 23, 12, 10, 0, tzinfo=UTC)
GPU = "nvidia.com/gpu"


def ago(seconds: float) -> str:
    """A time as the cluster writes it."""
    return (NOW - timedelta(seconds=seconds)).isoformat(timespec="seconds").replace("+00:00", "Z")


def condition(kind: str, good: bool = True, age: float = 590, **more: str) -> Object:
    return {"type": kind, "status": "True" if good else "False", "lastTransitionTime": ago(age), **more}


def node(
    name: str, cpu: str = "4", memory: str = "8Gi", gpus: int = 0, healthy: int | None = None, **more: Any
) -> Object:
    labels = {
        "kubernetes.io/hostname": name,
        **({"trainyard.dev/gpu": "ready"} if gpus else {}),
        **more.pop("labels", {}),
    }
    there = {"cpu": cpu, "memory": memory, "pods": "110"}
    sick = {GPU: str(gpus if healthy is None else healthy)} if gpus else {}
    ready = more.pop("ready", True)
    lost = {} if ready else {"reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
    state = condition("Ready", True, 9000) if ready else {**condition("Ready", False, 90, **lost), "status": "Unknown"}
    conditions = [condition("MemoryPressure", False, 9000), state]
    status = {"allocatable": {**there, **sick}, "capacity": {**there, **({GPU: str(gpus)} if gpus else {})}}
    return {
        "metadata": {"name": name, "labels": labels, "uid": name},
        "spec": more,
        "status": {**status, "conditions": conditions},
    }


CONTROL_PLANE = node("cp1", taints=[{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}])
NODES = [CONTROL_PLANE, node("worker1"), node("worker2")]


def system(name: str, namespace: str = "kube-system", good: bool = True, where: str = "cp1", **labels: str) -> Object:
    """A pod of the system."""
    container = {"name": "one", "resources": {"requests": {"cpu": "100m"}}}
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": name, "labels": labels},
        "spec": {"nodeName": where, "containers": [container]},
        "status": {"phase": "Running", "podIP": "10.244.0.2", "conditions": [condition("Ready", good, 9000)]},
    }


SCHEDULER = system("kube-scheduler-cp1", component="kube-scheduler")
MANAGER = system("kube-controller-manager-cp1", component="kube-controller-manager")
DNS = system("coredns-1", **{"k8s-app": "kube-dns"})
JOBSET = system(
    "jobset-controller-manager-1", "jobset-system", where="worker1", **{"control-plane": "controller-manager"}
)
SYSTEM = [SCHEDULER, MANAGER, DNS, JOBSET]


def other(run: str, place: str, where: str = "worker1", namespace: str = "trainings", **asked: str) -> Object:
    """A pod of another run that holds something."""
    role, _, index = place.rpartition("-")
    labels = {"trainyard.dev/run": run, "trainyard.dev/role": role, "batch.kubernetes.io/job-completion-index": index}
    container = {
        "name": "tensorflow",
        "resources": {"requests": {key.replace("gpu", GPU): each for key, each in asked.items()}},
    }
    meta = {"name": f"{run}-{place}", "namespace": namespace, "labels": labels, "uid": f"{run}-{place}"}
    return {"metadata": meta, "spec": {"nodeName": where, "containers": [container]}, "status": {"phase": "Running"}}


def claims(phase: str = "Bound", **spec: Any) -> list[Object]:
    meta = {"name": "mnist-logs", "namespace": "trainings", "uid": "claim"}
    return [{"metadata": meta, "spec": {"volumeName": "trainings-mnist-logs", **spec}, "status": {"phase": phase}}]


def leases(age: float = 2) -> list[Object]:
    names = ("kube-scheduler", "kube-controller-manager")
    return [{"metadata": {"name": name}, "spec": {"renewTime": ago(age)}} for name in names]
