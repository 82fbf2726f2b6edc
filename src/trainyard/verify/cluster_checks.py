"""Checks of the cluster: pure functions that compare the expected state with an observation.

Parts: the digests of running images; the other checks of the cluster.

The first part compares the digests that nodes report with the lock and the bundle. A node reports the digest that its
registry served under the name. A vendor's tag resolves to a multi-platform index, whose digest the lock pins. The
mirror serves the manifest of one platform, whose digest the bundle records. The check accepts either digest for an
image. It leaves out the pause image, because the API does not report the image of a sandbox.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..kube.api import Object
from ..kube.gpu_offer import offered
from ..trainings.template import CODE_VOLUME
from .observation import Observation, Unread
from .verdict import FAIL, PASS, UNKNOWN, Check, of_faults


def images_locked(locked: Mapping[str, str], pods: Sequence[Object], own: Mapping[str, bool] | None = None) -> Check:
    """Check that each running or mounted image has its locked digest; unknown if there is no digest to compare.

    An image that is named by digest, or comes from a registry of the site, is matched by its path only. An image that a
    training names by digest, and that is not pinned elsewhere, is accepted. So is the project's code of another
    release: an upgrade of the project repeats no run (`trainings/run.py`).

    :param locked: image reference -> digest (`sha256:` and 64 hexadecimal digits).
    :param own: pods of trainings as `namespace/name` -> whether the run may have other images of this project than the
        locked ones. It may if it is older (it was left unchanged) or newer.
    """
    if not locked:
        return Check("images_locked", UNKNOWN, "no digest is known; the lock and the receipt of site.yml contain them")
    by_image: dict[tuple[str, str], set[str]] = {}
    for reference, digest in locked.items():
        path, tag = image_version(reference)
        for key in ((path, tag), (path, "")):
            by_image.setdefault(key, set()).add(digest)
    wrong: dict[str, list[str]] = {}
    unpinned: dict[str, list[str]] = {}
    for pod, image, digest, is_code in running(pods):
        wanted = by_image.get(image_version(image), set())
        if digest in wanted or (not wanted and digest in locked.values()):
            continue
        # Compare the digest that the node reports too, not only the name: it proves that the training runs that image.
        if own and pod in own and digest and _digest(image) == digest and (own[pod] or is_code or not wanted):
            continue
        group = wrong if wanted and digest else unpinned
        text = f"{image} is {digest or 'of unknown digest'}"
        text += f" instead of {' or '.join(sorted(wanted))}" if wanted else ", which is not pinned"
        places = group.setdefault(text, [])
        places += [pod] if pod not in places else []
    if wrong or unpinned:
        details = "; ".join(f"{text} (in {', '.join(places)})" for text, places in {**wrong, **unpinned}.items())
        return Check("images_locked", FAIL if wrong else UNKNOWN, details)
    return Check("images_locked", PASS, "every running image has the digest of the lock")


def running(pods: Sequence[Object]) -> Iterator[tuple[str, str, str, bool]]:
    """Yield pod as `namespace/name`, image of the specification, digest, and whether it is a run's image of code.

    The digest is empty if it is not reported.
    """
    for pod in pods:
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        spec, status = pod.get("spec") or {}, pod.get("status") or {}
        for kind in ("initContainer", "container", "ephemeralContainer"):
            images = {each["name"]: each["image"] for each in spec.get(f"{kind}s") or []}
            for each in status.get(f"{kind}Statuses") or []:
                # Empty until the image is pulled; `system_pods` reports that case.
                if each.get("imageID"):
                    yield name, images[each["name"]], _digest(each["imageID"]), False
        for volume in spec.get("volumes") or []:
            if "image" in volume and status.get("containerStatuses"):
                reference = volume["image"]["reference"]
                yield name, reference, _digest(reference), volume["name"] == CODE_VOLUME


def image_version(image: str) -> tuple[str, str]:
    """Return (path without registry, tag) of an image's name; the tag is empty if it is named by digest only.

    `registry:5000/calico/node:v3.28.5@sha256:..` -> (`calico/node`, `v3.28.5`), `calico/node` -> (.., `latest`).
    """
    name, _, digest = image.partition("@")
    first, slash, rest = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        name = rest
    path, colon, tag = name.rpartition(":")
    return (path, tag) if colon else (name, "" if digest else "latest")


def _digest(name: str) -> str:
    """Return the digest in `registry/path@sha256:..`; without `@` it would be that of a configuration, never pinned."""
    return name.partition("@")[2]


CRASH_WINDOW_S = 60.0
CRASHES = 3
"""A container that has restarted `CRASHES` times and last ended within `CRASH_WINDOW_S` keeps restarting. A power cut
raises every count once, but then no container has ended recently."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """The state that inventory and lock define; documented as options of the module `verify_site`.

    :param made_images: None uses those kept in the receipt.
    :param planning: true in check mode; a run may then still add a missing node.
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
        """Image reference -> digest that it must have."""
        return {**(self.made_images or {}), **self.locked_images}


def run_complete(expected: Expected) -> Check:
    """Check for parts that the run left out."""
    return Check("run_complete", UNKNOWN, f"this run has left out {', '.join(expected.left_out)}")


def hosts_reached(expected: Expected) -> Check:
    """Check for hosts that the run lost."""
    lost = "; ".join(f"{host} was unreachable or has dropped out of the run" for host in expected.missing_hosts)
    return Check("hosts_reached", UNKNOWN if expected.planning else FAIL, lost)


def api_ready(complaint: str) -> Check:
    return of_faults("api_ready", [complaint] if complaint else [], "the API server reports ready", settles=True)


def nodes_ready(expected: Expected, nodes: Sequence[Object]) -> Check:
    """Check that each expected node is in the cluster and Ready."""
    ready = {_name(node): condition(node, "Ready") == "True" for node in nodes}
    missing = [name for name in expected.nodes if name not in ready]
    unready = [f"{name} is not Ready" for name in expected.nodes if not ready.get(name, True)]
    if missing and expected.planning and not unready:
        return Check("nodes_ready", UNKNOWN, f"not in the cluster yet: {', '.join(missing)}")
    wrong = [f"{name} is not in the cluster" for name in missing] + unready
    return of_faults("nodes_ready", wrong, f"{len(expected.nodes)} nodes are Ready", settles=True)


def node_versions(expected: Expected, nodes: Sequence[Object]) -> Check:
    """Check that each expected node in the cluster runs the locked versions."""
    wrong = []
    for node in nodes:
        if _name(node) in expected.nodes:
            row = node_row(node)
            for what, wanted in (("kubelet", expected.kubelet_version), ("containerd", expected.containerd_version)):
                if row[what] != wanted:
                    wrong.append(f"{row['name']} runs {what} {row[what] or '(unknown)'} instead of {wanted}")
    well = f"kubelet {expected.kubelet_version}, containerd {expected.containerd_version} on all nodes"
    return of_faults("node_versions", wrong, well)


def system_pods(pods: Mapping[str, Sequence[Object]], now: datetime) -> Check:
    """Check that system pods are Ready or Succeeded, no container keeps restarting, and no namespace is empty."""
    wrong = [f"namespace {space} has no pods" for space, found in pods.items() if not found]
    for space, found in pods.items():
        wrong += [f"{space}/{_name(pod)} {trouble}" for pod in found if (trouble := pod_trouble(pod, now))]
    return of_faults("system_pods", wrong, f"all pods in {', '.join(pods)} are healthy", settles=True)


def all_pods(seen: Observation) -> list[Object] | Unread:
    """Return the pods of the system namespaces and of the trainings."""
    parts = [seen.pods, *(run.pods for run in seen.runs)]
    for part in parts:
        if isinstance(part, Unread):
            return part
    system = {} if isinstance(seen.pods, Unread) else seen.pods
    trained = [pod for run in seen.runs if not isinstance(run.pods, Unread) for pod in run.pods]
    return [*(pod for found in system.values() for pod in found), *trained]


def pod_trouble(pod: Object, now: datetime) -> str:
    """Return the fault of a pod; empty if it is Ready or Succeeded and does not keep restarting."""
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
    """Check the `service_probe` findings of one kind: a bad one fails; a missing or unverified one is unknown."""
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
    return of_faults(kind, wrong, f"{len(expected.nodes)} nodes {what}")


def warnings(expected: Expected, seen: Observation) -> list[str]:
    """Return warnings about unmanaged and cordoned nodes."""
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
    """Return a node's entry in the receipt. `containerd` names another runtime in full; `gpus` needs at least one."""
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
    """Return the running versions: kubelet, containerd, and image names without registry -> tags."""
    found: dict[str, set[str]] = {}
    for row in map(node_row, nodes):
        for what in ("kubelet", "containerd"):
            found.setdefault(what, set()).add(row[what])
    for pod in pods:
        for container in (pod.get("spec") or {}).get("containers") or []:
            name, tag = image_version(container["image"])
            # Images of this project are named by digest only.
            found.setdefault(name, set()).add(tag or container["image"].rpartition("sha256:")[2][:12])
    return {name: ", ".join(sorted(seen)) for name, seen in found.items()}


def restarts(pods: Iterable[Object]) -> dict[str, int]:
    """Return the restarts of containers by pod name, only those above zero."""
    counts = {
        _name(pod): sum(
            each.get("restartCount", 0) for each in (pod.get("status") or {}).get("containerStatuses") or []
        )
        for pod in pods
    }
    return {name: count for name, count in sorted(counts.items()) if count}


def condition(thing: Object, kind: str) -> str:
    """Return the status of a condition of a node or pod: `True`, `False` or `Unknown` (also if it is missing)."""
    for each in (thing.get("status") or {}).get("conditions") or []:
        if each.get("type") == kind:
            return str(each.get("status"))
    return "Unknown"


def _name(thing: Object) -> str:
    return str(thing["metadata"]["name"])


def _age(stamp: str, now: datetime) -> float:
    """Return the seconds since an API timestamp (RFC 3339, UTC)."""
    return (now - datetime.fromisoformat(stamp)).total_seconds()
