"""The GPUs of a cluster and their holders, derived from nodes, node labels and pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..core.untrusted import whole
from ..kube.api import Api, Object
from ..kube.gpu_offer import offered
from ..kube.reads import Reader, listing, must, objects, read
from .gpus import CUDA, SHARING, Holder, free, has_gpus, holders, state
from .gpus import labels as labels_of


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
