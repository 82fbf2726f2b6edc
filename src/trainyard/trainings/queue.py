"""The resources that an unschedulable pod waits for, and their holders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..kube.api import Object
from ..kube.placement import allocatable, bars, by_node, lacking, left, on_node, requests, unplaced
from .names import GPU, NAME_LABEL
from .pod_places import place_of

_FIRST = (GPU, "memory", "cpu")
"""Order in which resources are named if several are short."""


Key = tuple[str, str]
"""Namespace and name of a run."""


@dataclass(frozen=True)
class Share:
    """The amount of a node's resource that a pod holds.

    :param run: its run; empty for a pod of no run.
    :param pod: its place in the run, such as `worker-1`; else its name.
    """

    namespace: str
    run: str
    pod: str
    amount: float

    def __str__(self) -> str:
        return f"{self.run or self.namespace}/{self.pod}"


@dataclass(frozen=True)
class NodeShare:
    """A resource of one node.

    :param free: amount that pods can get now.
    :param total: amount that is allocatable to pods.
    :param held: holders, largest amount first.
    """

    node: str
    free: float
    total: float
    held: Sequence[Share]


@dataclass(frozen=True)
class Shortage:
    """A resource that is short for a pod on the nodes that it may run on.

    :param asked: amount that the pod requests.
    :param nodes: the nodes that it may run on, by name; empty if there are none.
    """

    resource: str
    asked: float
    nodes: Sequence[NodeShare]

    @property
    def largest(self) -> NodeShare | None:
        """The node with the largest total, held or free."""
        return max(self.nodes, key=lambda each: each.total, default=None)

    @property
    def never(self) -> bool:
        """Return whether the request exceeds the total of every node."""
        return not self.nodes or all(each.total < self.asked for each in self.nodes)


class Progress(Protocol):
    """The progress of a run."""

    @property
    def step(self) -> int | None: ...

    @property
    def steps(self) -> int | None: ...

    @property
    def seconds_left(self) -> float | None: ...


@dataclass(frozen=True)
class HeldBy:
    """A run that holds what another one waits for, or the pods of a namespace that belong to no run.

    :param run: name of the run; empty for pods of no run.
    :param pods: places such as `worker-1`, or names of pods.
    :param resource: name of the resource, such as `nvidia.com/gpu`.
    :param amount: amount that they hold: pieces, CPUs or bytes.
    :param step: last step of the holding run; None if unknown, as for the next two.
    """

    namespace: str
    run: str
    pods: Sequence[str]
    resource: str
    amount: float
    step: int | None = None
    steps: int | None = None
    seconds_left: float | None = None


def shortages(pod: Object, nodes: Sequence[Object], pods: Sequence[Object]) -> list[Shortage]:
    """Return the resources that a pod waits for, the most significant first; empty if a node has room.

    :param nodes: nodes that the pod may run on, apart from resources; see `open_nodes`.
    :param pods: all pods of the cluster.
    """
    asked, there = requests(pod), by_node(pods)
    short = {name: lacking(asked, left(node, there.get(name, ()))) for name, node in _named(nodes)}
    if not short or not all(short.values()):
        return []
    counts = {name: sum(name in each for each in short.values()) for name in asked}
    wanted = [name for name, count in counts.items() if count]
    found = [
        Shortage(name, asked[name], [_share(name, node, there.get(place, ())) for place, node in _named(nodes)])
        for name in wanted
    ]
    return sorted(found, key=lambda each: (not each.never, -counts[each.resource], _rank(each.resource)))


def open_nodes(pod: Object, nodes: Iterable[Object], volumes: Sequence[Object] = ()) -> list[Object]:
    """Return the nodes that a pod may run on, apart from resources, sorted by name."""
    found = [node for node in nodes if not list(bars(pod, node, volumes))]
    return sorted(found, key=lambda each: str(each["metadata"]["name"]))


def holders(short: Iterable[Shortage]) -> dict[Key, list[Share]]:
    """Return the holders of the first short resource that has any: (namespace, run) -> shares of its pods.

    Pods of no run are under their namespace and an empty name.
    """
    for each in short:
        found: dict[Key, list[Share]] = {}
        for node in each.nodes:
            for share in node.held:
                found.setdefault((share.namespace, share.run), []).append(share)
        if found:
            return found
    return {}


def held_by(
    mine: Iterable[Object], nodes: Sequence[Object], pods: Sequence[Object], rows: Mapping[Key, Progress]
) -> tuple[HeldBy, ...]:
    """Return the holders of what a run's first unschedulable pod waits for; empty if resources are not the reason.

    :param mine: the run's pods.
    :param pods: all pods of the cluster.
    :param rows: progress of each run.
    """
    for pod in mine:
        if unplaced(pod) is None:
            continue
        for short in shortages(pod, open_nodes(pod, nodes), pods):
            if not (found := holders([short])):
                continue
            return tuple(
                HeldBy(
                    key[0],
                    key[1],
                    [each.pod for each in shares],
                    short.resource,
                    sum(each.amount for each in shares),
                    *((one.step, one.steps, one.seconds_left) if key[1] and (one := rows.get(key)) else ()),
                )
                for key, shares in found.items()
            )
    return ()


def _share(resource: str, node: Object, pods: Sequence[Object]) -> NodeShare:
    name = node["metadata"]["name"]
    held = [_held(pod, resource) for pod in on_node(name, pods)]
    mine = sorted((each for each in held if each.amount), key=lambda each: (-each.amount, str(each)))
    return NodeShare(name, left(node, pods).get(resource, 0.0), allocatable(node).get(resource, 0.0), mine)


def _named(nodes: Iterable[Object]) -> list[tuple[str, Object]]:
    return [(str(node["metadata"]["name"]), node) for node in nodes]


def _held(pod: Object, resource: str) -> Share:
    meta: Mapping[str, str] = pod["metadata"]
    run = str((pod["metadata"].get("labels") or {}).get(NAME_LABEL, ""))
    return Share(meta["namespace"], run, place_of(pod) if run else meta["name"], requests(pod).get(resource, 0.0))


def _rank(resource: str) -> int:
    return _FIRST.index(resource) if resource in _FIRST else len(_FIRST)
