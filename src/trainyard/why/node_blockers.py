"""Find the obstacles that keep a pod from each node, and the one that is easiest to remove."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ..kube.api import Object
from ..kube.gpu_offer import offered
from ..kube.placement import allocatable, bars, lacking, left, requests, unplaced
from ..trainings.gpu_requests import state as gpu_state
from ..trainings.names import GPU, NAME_LABEL
from ..trainings.queue import Shortage, holders, shortages
from .snapshot import SYSTEMS
from .view import View

CONTROL_PLANE = "node-role.kubernetes.io/"
"""Prefix of the taints that intentionally keep trainings off control plane nodes."""
_LOST = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "node.kubernetes.io/network-unavailable")
_PRESSED = ("node.kubernetes.io/memory-pressure", "node.kubernetes.io/disk-pressure", "node.kubernetes.io/pid-pressure")

ORDER = (
    "node_not_ready",
    "node_pressure",
    "gpu_skew",
    "gpu_missing",
    "gpu_unhealthy",
    "cordoned",
    "tainted",
    "held_by",
)
"""If several nodes have equally few problems, the problem that comes first here is reported."""

_OF_CLAIMS = ("persistentvolumeclaim", "persistent volumes to bind", "pvc(s)")
"""Fragments of the scheduler's messages about claims. A claim that is bound on first use may be Pending until then."""


@dataclass(frozen=True)
class Spot:
    """A node as a candidate for one pod.

    :param problems: code -> description in a few words; empty if the pod fits.
    """

    node: str
    problems: dict[str, str]


@dataclass(frozen=True)
class Placement:
    """A pod for which the scheduler finds no node.

    :param said: message of the scheduler.
    :param volumes: of its claims.
    :param unbound: names of its claims that do not exist or are not bound.
    :param nodes: candidates in the cluster; without control plane nodes if there are others.
    :param everyone: pods that hold resources of the cluster.
    """

    pod: Object
    place: str
    said: str
    volumes: Sequence[Object]
    unbound: Sequence[str]
    nodes: Sequence[Object]
    everyone: Sequence[Object]

    @cached_property
    def asked(self) -> dict[str, float]:
        """The resources that it requests."""
        return requests(self.pod)

    @cached_property
    def eligible(self) -> list[Object]:
        """The nodes that match the pod's selectors and volumes."""
        wrong = ("selector", "volume")
        return [n for n in self.nodes if not any(each.kind in wrong for each in bars(self.pod, n, self.volumes))]

    @cached_property
    def spots(self) -> list[Spot]:
        """The eligible nodes with the problems of each."""
        return [Spot(node["metadata"]["name"], self._problems(node)) for node in self.eligible]

    @cached_property
    def code(self) -> str:
        """The code of the reason why the pod waits; `unplaced` if no other code covers it."""
        if self.unbound:
            return "claim_unbound"
        if not self.eligible:
            labels = [node for node in self.nodes if not any(each.kind == "selector" for each in bars(self.pod, node))]
            return "volume_node" if labels else "selector"
        if any(not spot.problems for spot in self.spots):
            return "unplaced"
        # A node that is too small never becomes a candidate.
        able = [spot for spot in self.spots if "never_fits" not in spot.problems]
        if not able:
            return "never_fits"
        fewest = min(len(spot.problems) for spot in able)
        near = {code for spot in able if len(spot.problems) == fewest for code in spot.problems}
        code = next(code for code in ORDER if code in near)
        # Resources that only the run itself holds are never released to it.
        return "never_fits" if code == "held_by" and self.own else code

    @property
    def own(self) -> bool:
        """Whether only the run itself and system pods hold the resources that it waits for."""
        meta = self.pod["metadata"]
        mine = (meta["namespace"], (meta.get("labels") or {}).get(NAME_LABEL, ""))
        who = set(holders(self.short))
        return mine in who and all(key == mine or key[0] in SYSTEMS for key in who)

    @cached_property
    def short(self) -> list[Shortage]:
        """The missing resources on the nodes that have no other problem."""
        names = {spot.node for spot in self.spots if set(spot.problems) <= {"held_by", "never_fits"}}
        return shortages(self.pod, [n for n in self.eligible if n["metadata"]["name"] in names], self.everyone)

    @property
    def without_gpus(self) -> bool:
        """Whether it requests a GPU, and no eligible node has any."""
        return bool(self.asked.get(GPU)) and not any(allocatable(node).get(GPU) for node in self.eligible)

    def _problems(self, node: Object) -> dict[str, str]:
        found: dict[str, str] = {}
        conditions = {each["type"]: each for each in (node.get("status") or {}).get("conditions") or []}
        ready = conditions.get("Ready") or {}
        if ready and ready.get("status") != "True":
            found["node_not_ready"] = str(ready.get("message") or ready.get("reason") or "it is not Ready")
        for bar in bars(self.pod, node):
            key = bar.detail.partition(":")[0].partition("=")[0]
            if bar.kind == "cordon":
                found["cordoned"] = "it is cordoned"
            elif bar.kind == "taint" and key in _LOST:
                found.setdefault("node_not_ready", f"it has the taint {bar.detail}")
            elif bar.kind == "taint" and key in _PRESSED:
                found["node_pressure"] = f"it has the taint {bar.detail}"
            elif bar.kind == "taint":
                found["tainted"] = f"it has the taint {bar.detail}"
        found |= self._shortage(node)
        return found

    def _shortage(self, node: Object) -> dict[str, str]:
        never = lacking(self.asked, allocatable(node))
        short = lacking(self.asked, left(node, self.everyone))
        capacity, healthy = offered(node)
        state, wanted = gpu_state(node), self.asked.get(GPU, 0.0)
        if never == [GPU] or (short == [GPU] and not never):
            if state == "skew":
                return {"gpu_skew": "its loaded driver module differs from its driver library"}
            if state == "no plugin" and has_mark(node):
                return {"gpu_missing": "its device plugin offers none"}
            free = left(node, self.everyone).get(GPU, 0.0)
            if capacity - healthy > 0 and free + capacity - healthy >= wanted:
                return {"gpu_unhealthy": f"{capacity - healthy} of {capacity} GPUs are unhealthy"}
        if never:
            return {"never_fits": ", ".join(never)}
        return {"held_by": ", ".join(short)} if short else {}


def has_mark(node: Object) -> bool:
    """Return whether a node should have GPUs."""
    return "trainyard.dev/gpu" in (node["metadata"].get("labels") or {})


def placements(view: View) -> list[Placement]:
    """Return the run's pods for which the scheduler finds no node.

    :raises CannotTell: nodes, other pods, claims or volumes could not be read.
    """
    without = {place: pod for place, pod in view.waiting.items() if unplaced(pod) is not None}
    if not without:
        return []
    nodes = view.part("nodes")
    found = []
    for place, pod in without.items():
        claims = [
            str(volume["persistentVolumeClaim"]["claimName"])
            for volume in pod["spec"].get("volumes") or []
            if "persistentVolumeClaim" in volume
        ]
        known = {each["metadata"]["name"]: each for each in view.part("claims")} if claims else {}
        bound = {name: known[name]["spec"].get("volumeName", "") for name in claims if name in known}
        said = unplaced(pod) or ""
        blamed = any(word in said.lower() for word in _OF_CLAIMS)
        unbound = [
            name for name in claims if blamed and (known.get(name, {}).get("status") or {}).get("phase") != "Bound"
        ]
        names = set(bound.values())
        volumes = [each for each in view.part("volumes") if each["metadata"]["name"] in names] if names else []
        tolerant = [node for node in nodes if not any(_is_control_plane(each.detail) for each in bars(pod, node))]
        choice = tolerant or nodes
        found.append(Placement(pod, place, said, volumes, unbound, choice, view.part("everyone")))
    return found


def _is_control_plane(taint: str) -> bool:
    return taint.startswith(CONTROL_PLANE)
