"""The checks of the verdict: pure functions from what was expected and what was read to a `Check`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..kube.api import Object
from ..kube.gpu_offer import offered
from .gpus import gpu_checks
from .images import image_version, images_locked
from .reading import Observation, Unread
from .verdict import FAIL, PASS, UNKNOWN, Check, judge

CRASH_WINDOW_S = 60.0
CRASHES = 3
"""A container that has restarted `CRASHES` times and last ended within `CRASH_WINDOW_S` is still restarting. After a
power cut every count has grown: those counts stand still, and only old endings are seen."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What inventory and lock say of the cluster; documented as options of the module `verify_site`.

    :param made_images: None for those that the receipt has kept.
    :param planning: true in check mode, where a node that is not there may be one that the run would add.
    """

    nodes: Sequence[str]
    kubelet_version: str
    containerd_version: str
    locked_images: Mapping[str, str] = field(default_factory=dict)
    made_images: Mapping[str, str] | None = None
    probes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    gpus: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    missing_hosts: Sequence[str] = ()
    left_out: Sequence[str] = ()
    usage: bool = False
    console: Mapping[str, Any] = field(default_factory=dict)
    kubelet_hosts: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    planning: bool = False

    @property
    def images(self) -> dict[str, str]:
        """Image reference to the digest that it must have."""
        return {**(self.made_images or {}), **self.locked_images}


def site_checks(
    expected: Expected, seen: Observation, now: datetime, own: Mapping[str, bool] | None = None
) -> list[Check]:
    """The checks of the cluster itself, in the order of a reader's interest.

    :param own: pods of trainings, see `images_locked`.
    """
    return [
        *about_the_run(expected),
        judge("api_ready", seen.api, api_ready),
        judge("nodes_ready", seen.nodes, lambda nodes: nodes_ready(expected, nodes)),
        judge("node_versions", seen.nodes, lambda nodes: node_versions(expected, nodes)),
        judge("system_pods", seen.pods, lambda pods: system_pods(pods, now)),
        judge("images_locked", all_pods(seen), lambda pods: images_locked(expected.images, pods, own)),
        probed("dns", "resolve a Service name", expected),
        probed("service", "reach the API server through its Service", expected),
        *([probed("shared_files", "have the shared files mounted", expected)] if _shares(expected) else []),
        *([] if isinstance(seen.nodes, Unread) else gpu_checks(expected.gpus, seen.nodes)),
    ]


def _shares(expected: Expected) -> bool:
    """Whether a node was asked for shared files, which not every site mounts."""
    return any("shared_files" in probe for probe in expected.probes.values())


def about_the_run(expected: Expected) -> list[Check]:
    """Parts that the run has left out and hosts that it has lost; no check when there is neither."""
    checks = []
    if expected.left_out:
        checks.append(Check("run_complete", UNKNOWN, f"this run has left out {', '.join(expected.left_out)}"))
    if expected.missing_hosts:
        lost = "; ".join(f"{host} was not reached or has dropped out of the run" for host in expected.missing_hosts)
        checks.append(Check("hosts_reached", UNKNOWN if expected.planning else FAIL, lost))
    return checks


def api_ready(complaint: str) -> Check:
    return _check("api_ready", [complaint] if complaint else [], "the API server says that it is ready", settles=True)


def nodes_ready(expected: Expected, nodes: Sequence[Object]) -> Check:
    """Every expected node is in the cluster and Ready."""
    ready = {_name(node): condition(node, "Ready") == "True" for node in nodes}
    missing = [name for name in expected.nodes if name not in ready]
    unready = [f"{name} is not Ready" for name in expected.nodes if not ready.get(name, True)]
    if missing and expected.planning and not unready:
        return Check("nodes_ready", UNKNOWN, f"not in the cluster yet: {', '.join(missing)}")
    wrong = [f"{name} is not in the cluster" for name in missing] + unready
    return _check("nodes_ready", wrong, f"{len(expected.nodes)} nodes are Ready", settles=True)


def node_versions(expected: Expected, nodes: Sequence[Object]) -> Check:
    """Every expected node that is in the cluster runs the locked versions."""
    wrong = []
    for node in nodes:
        if _name(node) in expected.nodes:
            row = node_row(node)
            for what, wanted in (("kubelet", expected.kubelet_version), ("containerd", expected.containerd_version)):
                if row[what] != wanted:
                    wrong.append(f"{row['name']} runs {what} {row[what] or '(unknown)'}, locked is {wanted}")
    well = f"kubelet {expected.kubelet_version}, containerd {expected.containerd_version} everywhere"
    return _check("node_versions", wrong, well)


def system_pods(pods: Mapping[str, Sequence[Object]], now: datetime) -> Check:
    """Every system pod is Ready or ended well, no container keeps restarting, no system namespace is empty."""
    wrong = [f"namespace {space} has no pods" for space, found in pods.items() if not found]
    for space, found in pods.items():
        wrong += [f"{space}/{_name(pod)} {trouble}" for pod in found if (trouble := pod_trouble(pod, now))]
    return _check("system_pods", wrong, f"all pods in {', '.join(pods)} are healthy", settles=True)


def all_pods(seen: Observation) -> list[Object] | Unread:
    """The pods of the system namespaces and those of the trainings."""
    parts = [seen.pods, *(run.pods for run in seen.runs)]
    for part in parts:
        if isinstance(part, Unread):
            return part
    system = {} if isinstance(seen.pods, Unread) else seen.pods
    trained = [pod for run in seen.runs if not isinstance(run.pods, Unread) for pod in run.pods]
    return [*(pod for found in system.values() for pod in found), *trained]


def pod_trouble(pod: Object, now: datetime) -> str:
    """What is wrong with a pod; empty if it is Ready or Succeeded and not restarting over and over."""
    status = pod.get("status") or {}
    if status.get("phase") == "Succeeded":
        return ""
    containers = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    for container in containers:
        reason = ((container.get("state") or {}).get("waiting") or {}).get("reason")
        if reason and reason not in ("PodInitializing", "ContainerCreating"):
            return f"waits: {reason}"
    if status.get("phase") != "Running":
        return f"is {status.get('phase', 'Unknown')}"
    if condition(pod, "Ready") != "True":
        return "is not Ready"
    for container in containers:
        ended = ((container.get("lastState") or {}).get("terminated") or {}).get("finishedAt")
        if container.get("restartCount", 0) >= CRASHES and ended and _age(ended, now) < CRASH_WINDOW_S:
            return f"keeps restarting (container {container.get('name')})"
    return ""


def probed(kind: str, what: str, expected: Expected) -> Check:
    """A `service_probe` finding of every node: a bad one fails; a missing or unverified one leaves the answer open."""
    wrong, unsure = [], []
    for node in expected.nodes:
        finding = (expected.probes.get(node) or {}).get(kind)
        if not finding:
            unsure.append(f"not probed: {node}")
        elif not finding.get("ok"):
            wrong.append(f"{node}: {finding.get('error') or 'no answer'}")
        elif not finding.get("verified", True):
            unsure.append(f"{node} has no CA to verify the answer with")
    if unsure and not wrong:
        return Check(kind, UNKNOWN, "; ".join(unsure))
    return _check(kind, wrong, f"{len(expected.nodes)} nodes {what}")


def warnings(expected: Expected, seen: Observation) -> list[str]:
    """What is strange and no failure."""
    if isinstance(seen.nodes, Unread):
        return []
    strange = [
        f"node {_name(node)} is in the cluster and not in the inventory"
        for node in seen.nodes
        if _name(node) not in expected.nodes
    ]
    cordoned = [
        f"node {_name(node)} is cordoned" for node in seen.nodes if (node.get("spec") or {}).get("unschedulable")
    ]
    return strange + cordoned


def node_row(node: Object) -> dict[str, Any]:
    """A node as the receipt shows it; `containerd` names another runtime in full, `gpus` is there where it has any."""
    info = (node.get("status") or {}).get("nodeInfo") or {}
    capacity, allocatable = offered(node)
    return {
        "name": _name(node),
        "ready": condition(node, "Ready") == "True",
        "kubelet": str(info.get("kubeletVersion", "")).removeprefix("v"),
        "containerd": str(info.get("containerRuntimeVersion", "")).removeprefix("containerd://").removeprefix("v"),
        **({"gpus": {"offered": capacity, "healthy": allocatable}} if capacity else {}),
    }


def versions(nodes: Iterable[Object], pods: Iterable[Object]) -> dict[str, str]:
    """Versions seen running: of the nodes' programs, and image names without their registry to tags."""
    found: dict[str, set[str]] = {}
    for row in map(node_row, nodes):
        for what in ("kubelet", "containerd"):
            found.setdefault(what, set()).add(row[what])
    for pod in pods:
        for container in (pod.get("spec") or {}).get("containers") or []:
            name, tag = image_version(container["image"])
            # An image of ours is named by digest alone.
            found.setdefault(name, set()).add(tag or container["image"].rpartition("sha256:")[2][:12])
    return {name: ", ".join(sorted(seen)) for name, seen in found.items()}


def restarts(pods: Iterable[Object]) -> dict[str, int]:
    """Pod name to the restarts of its containers, only those above zero."""
    counts = {
        _name(pod): sum(
            each.get("restartCount", 0) for each in (pod.get("status") or {}).get("containerStatuses") or []
        )
        for pod in pods
    }
    return {name: count for name, count in sorted(counts.items()) if count}


def condition(thing: Object, kind: str) -> str:
    """Status of a condition of a node or pod: `True`, `False` or `Unknown`; the latter also if there is none."""
    for each in (thing.get("status") or {}).get("conditions") or []:
        if each.get("type") == kind:
            return str(each.get("status"))
    return "Unknown"


def _check(name: str, wrong: Sequence[str], well: str, *, settles: bool = False) -> Check:
    return Check(name, FAIL, "; ".join(wrong), settles) if wrong else Check(name, PASS, well)


def _name(thing: Object) -> str:
    return str(thing["metadata"]["name"])


def _age(stamp: str, now: datetime) -> float:
    """Seconds since an API time stamp (RFC 3339, UTC)."""
    return (now - datetime.fromisoformat(stamp)).total_seconds()
