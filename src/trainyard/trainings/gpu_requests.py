"""GPUs of a cluster's nodes: offers, holders, and reasons why a pod could never get its own.

Parts: the GPUs that nodes offer and pods hold, with the faults of a training; the facts of each node. Both parts derive
them from nodes, node labels and pods.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..core.untrusted import whole
from ..kube.api import Api, Object
from ..kube.gpu_offer import offered
from ..kube.placement import pieces
from ..kube.reads import Reader, listing, must, objects, read
from .model import Role, Training
from .names import GPU, NAME_LABEL
from .pod_places import place_of, pod_state

MARK = "trainyard.dev/gpu"
"""Label of the nodes in `gpu_nodes`: `ready`, or `skew` if the loaded kernel module does not match the library."""
SHARING, SHARED = "nvidia.com/gpu.sharing-strategy", "time-slicing"
"""Label of GPU feature discovery, and its value if several pods take turns on a GPU."""
CUDA = "nvidia.com/cuda.runtime-version.full"
"""Label of GPU feature discovery: the newest CUDA version that the node's driver supports."""

ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True)
class Holder:
    """A pod that holds GPUs.

    :param pod: `namespace/name`, or the run and its process, such as `wide worker-1`.
    :param gpus: number of GPUs that it holds.
    :param unhealthy: how many of them its status reports as unhealthy.
    """

    pod: str
    gpus: int
    unhealthy: int

    def __str__(self) -> str:
        count = f" ({self.gpus})" if self.gpus > 1 else ""
        return f"{self.pod}{count}" + (", unhealthy" if self.unhealthy else "")


def has_gpus(node: Object) -> bool:
    """Return whether a node offers GPUs, or should do so."""
    return bool(offered(node)[0]) or MARK in labels_of(node)


def state(node: Object) -> str:
    """Return `ready`, or why no new pod gets a GPU on the node: `skew`, `no plugin`, `cordoned`."""
    if labels_of(node).get(MARK) == "skew":
        return "skew"
    if not offered(node)[0]:
        return "no plugin"
    return "cordoned" if (node.get("spec") or {}).get("unschedulable") else "ready"


def held(pod: Object) -> int:
    """Return the number of GPUs that a pod holds; 0 once it has ended."""
    if (pod.get("status") or {}).get("phase") in ENDED:
        return 0
    limits = [(each.get("resources") or {}).get("limits") or {} for each in pod["spec"].get("containers") or []]
    return sum(pieces(each.get(GPU, 0)) for each in limits)


def holders(pods: Iterable[Object]) -> dict[str, list[Holder]]:
    """Return the pods that hold GPUs: node -> holders, sorted by name."""
    found: dict[str, list[Holder]] = {}
    for pod in pods:
        if (count := held(pod)) and (node := pod["spec"].get("nodeName")):
            found.setdefault(node, []).append(Holder(_called(pod), count, _unhealthy(pod)))
    return {node: sorted(each, key=lambda holder: holder.pod) for node, each in found.items()}


def free(node: Object, holding: Sequence[Holder]) -> int:
    """Return the number of GPUs of a node that no pod holds."""
    return max(0, offered(node)[1] - sum(each.gpus for each in holding))


def whereabouts(nodes: Sequence[Object], pods: Iterable[Object]) -> str:
    """Describe where a cluster's GPUs are.

    For example `worker1: 1 of 2 free, held by wide worker-1; worker2: 2 of 2 free, cordoned`.
    """
    holding, parts = holders(pods), []
    for node in sorted(filter(has_gpus, nodes), key=lambda each: str(each["metadata"]["name"])):
        name = node["metadata"]["name"]
        mine = holding.get(name, [])
        who = [f"held by {', '.join(map(str, mine))}"] if mine else []
        why = [state(node)] if state(node) != "ready" else []
        parts.append(", ".join([f"{name}: {free(node, mine)} of {offered(node)[1]} free", *why, *who]))
    return "; ".join(parts) or "no node has any"


def missing_gpus(api: Api, pods: Iterable[Object]) -> str:
    """Return `; GPUs: ` and where they are if the scheduler finds none for one of these pods; else empty.

    :param pods: pods of a run.
    """
    if not any(kind == "waiting" and GPU in why for kind, why in map(pod_state, pods)):
        return ""
    return f"; GPUs: {whereabouts(api.list('v1', 'Node'), api.list('v1', 'Pod'))}"


def gpu_faults(training: Training, nodes: Sequence[Object]) -> Iterator[str]:
    """Describe pods that would wait forever or fail at start: no node has enough GPUs, or its driver is too old."""
    for name, role in training.roles.items():
        count = role.gpus
        if not count:
            continue
        mine = [node for node in nodes if role.node_selector.items() <= labels_of(node).items()]
        enough = [node for node in mine if _most(node) >= count]
        if not enough:
            yield f"a pod of {name} requests {count} GPUs, but {_largest(mine, role)}"
        for node in enough:
            runs = labels_of(node).get(CUDA, "")
            if role.cuda and runs and _major(runs) < _major(role.cuda):
                yield (
                    f"the image of {name} has CUDA {role.cuda}, but the driver of {node['metadata']['name']} supports "
                    f"{runs} at most (playbooks/gpu_driver.yml changes it, node_selector chooses other nodes)"
                )


def labels_of(node: Object) -> Mapping[str, str]:
    return node["metadata"].get("labels") or {}


def _most(node: Object) -> int:
    """Return the GPUs that one pod can get on a node. The device plugin refuses a second share of a shared GPU."""
    allocatable = offered(node)[1]
    return min(allocatable, 1) if labels_of(node).get(SHARING) == SHARED else allocatable


def _largest(nodes: Sequence[Object], role: Role) -> str:
    """Describe the node on which one pod could get the most GPUs."""
    where = f" with {', '.join(f'{key}={value}' for key, value in role.node_selector.items())}"
    largest = max(nodes, key=_most, default=None)
    if largest is None or not _most(largest):
        return f"no node{where if role.node_selector else ''} has any"
    shared = ", each of them shared, and a pod gets only one" if labels_of(largest).get(SHARING) == SHARED else ""
    return f"{largest['metadata']['name']} has the most, {offered(largest)[1]}{shared}"


def _major(version: str) -> float:
    """Return the first number of a version; infinity if the label has none, so that no node is refused."""
    found = whole(version.partition(".")[0])
    return math.inf if found is None else found


def _called(pod: Object) -> str:
    meta = pod["metadata"]
    run = (meta.get("labels") or {}).get(NAME_LABEL)
    return f"{run} {place_of(pod)}" if run else f"{meta['namespace']}/{meta['name']}"


def _unhealthy(pod: Object) -> int:
    """Return how many devices of a running pod the kubelet reports as unhealthy (`allocatedResourcesStatus`)."""
    return sum(
        device.get("health") == "Unhealthy"
        for container in (pod.get("status") or {}).get("containerStatuses") or []
        for resource in container.get("allocatedResourcesStatus") or []
        for device in resource.get("resources") or []
    )


@dataclass(frozen=True)
class Row:
    """The GPUs of one node, which are all of one product.

    :param product: name of the GPU; empty before feature discovery reports it, as for the next three.
    :param memory: memory of one GPU in MiB; 0 if unknown.
    :param driver: version of the driver.
    :param cuda: newest CUDA version that the driver supports.
    :param offered: number of GPUs that the node offers, including shares and unhealthy ones.
    :param healthy: how many of them pods can get.
    :param sharing: `none`, or how several pods share a GPU: `time-slicing x4`.
    :param state: `ready`, or why no new pod gets a GPU: `skew`, `no plugin`, `cordoned`.
    :param free: number of GPUs that no pod holds.
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
    free: int


def reading() -> Reader[list[Row]]:
    """Read the nodes that have GPUs, or should have some, sorted by name.

    :raises KubeError: nodes or pods cannot be read.
    """
    nodes, pods = yield listing("v1", "nodes"), listing("v1", "pods")
    return rows(must(objects(nodes)), must(objects(pods)))


def rows(nodes: Sequence[Object], pods: Sequence[Object]) -> list[Row]:
    """Return the nodes that have GPUs, or should have some, sorted by name.

    :param pods: all pods of the cluster.
    """
    holding = holders(pods)
    found = [row(node, holding.get(node["metadata"]["name"], [])) for node in nodes if has_gpus(node)]
    return sorted(found, key=lambda each: each.node)


def gpus(api: Api) -> list[Row]:
    """Return the nodes with GPUs of the cluster of an `Api`, as `reading` does.

    :raises KubeError: the cluster does not answer, or refuses.
    """
    return read(api, reading())


def row(node: Object, holding: Sequence[Holder]) -> Row:
    """Return the GPUs of one node from the objects read."""
    labels = labels_of(node)
    capacity, allocatable = offered(node)
    return Row(
        node=node["metadata"]["name"],
        product=labels.get("nvidia.com/gpu.product", "").removesuffix("-SHARED"),
        memory=whole(labels.get("nvidia.com/gpu.memory"), 0) or 0,
        driver=labels.get("nvidia.com/cuda.driver-version.full", ""),
        cuda=labels.get(CUDA, ""),
        offered=capacity,
        healthy=allocatable,
        sharing=_sharing(labels),
        state=state(node),
        holders=holding,
        free=free(node, holding),
    )


def _sharing(labels: Mapping[str, str]) -> str:
    strategy = labels.get(SHARING, "none")
    return strategy if strategy == "none" else f"{strategy} x{labels.get('nvidia.com/gpu.replicas', '?')}"
