"""Which GPUs a cluster has, and who holds them: from nodes, their labels, and pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansible.module_utils.trainyard.kube.api import Api, Object
from ansible.module_utils.trainyard.training.names import NAME_LABEL
from ansible.module_utils.trainyard.training.places import place_of
from ansible.module_utils.trainyard.verify.gpus import GPU, offered

MARK = "trainyard.dev/gpu"
"""Label of the nodes in `gpu_nodes`: `ready`, or `skew` where the loaded module is not that of the library."""

ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True)
class Holder:
    """A pod with GPUs.

    :param pod: `namespace/name`, or the run and its process, such as `wide worker-1`.
    :param gpus: how many it holds.
    :param unhealthy: how many of them its status calls unhealthy.
    """

    pod: str
    gpus: int
    unhealthy: int


@dataclass(frozen=True)
class Row:
    """The GPUs of one node, which are of one kind.

    :param product: name of the GPU; empty before feature discovery has said it, and so on for the next three.
    :param memory: of one GPU, in MiB; 0 where unknown.
    :param driver: version of the driver.
    :param cuda: newest CUDA that the driver runs.
    :param offered: GPUs that the node offers, shares counted, healthy or not.
    :param healthy: those of them that pods can have.
    :param sharing: `none`, or how several pods share one: `time-slicing x4`.
    :param state: `ready`, or why no new pod gets one: `skew`, `no plugin`, `cordoned`.
    """

    node: str
    product: str
    memory: int
    driver: str
    cuda: str
    offered: int
    healthy: int
    sharing: str
    state: str
    holders: Sequence[Holder]

    @property
    def free(self) -> int:
        return max(0, self.healthy - sum(each.gpus for each in self.holders))


def gpus(api: Api) -> list[Row]:
    """The nodes that have GPUs, or should have some, by name.

    :raises KubeError: the cluster does not answer, or refuses.
    """
    holders: dict[str, list[Holder]] = {}
    for pod in api.list("v1", "Pod"):
        if (count := held(pod)) and (node := pod["spec"].get("nodeName")):
            holders.setdefault(node, []).append(Holder(_called(pod), count, _unhealthy(pod)))
    nodes = [node for node in api.list("v1", "Node") if offered(node)[0] or MARK in _labels(node)]
    rows = [row(node, sorted(holders.get(node["metadata"]["name"], ()), key=lambda each: each.pod)) for node in nodes]
    return sorted(rows, key=lambda each: each.node)


def row(node: Object, holders: Sequence[Holder]) -> Row:
    """One node from what was read."""
    labels = _labels(node)
    capacity, allocatable = offered(node)
    return Row(
        node=node["metadata"]["name"],
        product=labels.get("nvidia.com/gpu.product", "").removesuffix("-SHARED"),
        memory=int(labels.get("nvidia.com/gpu.memory", 0)),
        driver=labels.get("nvidia.com/cuda.driver-version.full", ""),
        cuda=labels.get("nvidia.com/cuda.runtime-version.full", ""),
        offered=capacity,
        healthy=allocatable,
        sharing=_sharing(labels),
        state=_state(node, labels, capacity),
        holders=holders,
    )


def held(pod: Object) -> int:
    """GPUs that a pod holds; none once it has ended."""
    if (pod.get("status") or {}).get("phase") in ENDED:
        return 0
    limits = [(each.get("resources") or {}).get("limits") or {} for each in pod["spec"].get("containers") or []]
    return sum(int(each.get(GPU, 0)) for each in limits)


def _state(node: Object, labels: Mapping[str, str], capacity: int) -> str:
    if labels.get(MARK) == "skew":
        return "skew"
    if not capacity:
        return "no plugin"
    return "cordoned" if (node.get("spec") or {}).get("unschedulable") else "ready"


def _sharing(labels: Mapping[str, str]) -> str:
    strategy = labels.get("nvidia.com/gpu.sharing-strategy", "none")
    return strategy if strategy == "none" else f"{strategy} x{labels.get('nvidia.com/gpu.replicas', '?')}"


def _called(pod: Object) -> str:
    meta = pod["metadata"]
    run = (meta.get("labels") or {}).get(NAME_LABEL)
    return f"{run} {place_of(pod)}" if run else f"{meta['namespace']}/{meta['name']}"


def _unhealthy(pod: Object) -> int:
    """What the kubelet says of the devices of a running pod (Kubernetes' `allocatedResourcesStatus`)."""
    return sum(
        device.get("health") == "Unhealthy"
        for container in (pod.get("status") or {}).get("containerStatuses") or []
        for resource in container.get("allocatedResourcesStatus") or []
        for device in resource.get("resources") or []
    )


def _labels(node: Object) -> Mapping[str, str]:
    return node["metadata"].get("labels") or {}
