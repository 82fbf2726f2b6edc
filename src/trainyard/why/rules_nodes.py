"""What is wrong with nodes: those that a pod of the run would need, and those that its pods are on."""

from __future__ import annotations

from collections.abc import Iterator

from ..trainings.places import newest, pod_state
from .answer import Evidence
from .no_node import EFFECT, of, said
from .rule import Hit
from .spots import Placement
from .view import View


def _nodes(each: Placement, code: str) -> list[Evidence]:
    return [Evidence("node", spot.node, "", spot.problems[code]) for spot in each.spots if code in spot.problems]


def _barred(view: View, code: str, what: str, remedy: str) -> Iterator[Hit]:
    """Hits for a code that names what is wrong with nodes.

    :param what: with `{}` for the nodes' names.
    """
    for each in of(view, code):
        wrong = [spot.node for spot in each.spots if code in spot.problems]
        yield Hit(
            each.place,
            what.format(", ".join(wrong)),
            EFFECT,
            [*_nodes(each, code), *said(each)],
            remedy.format(wrong[0]),
        )


def node_not_ready(view: View) -> Iterator[Hit]:
    """A node of the run, or one that it needs, does not answer."""
    # Among them those that are being deleted: on a node that is gone, a pod stays so.
    for place, pod in {**newest(view.part("pods")), **view.pods}.items() if view.goes_on else ():
        name = str((pod.get("spec") or {}).get("nodeName") or "")
        if not name or pod_state(pod)[0] == "ended":
            continue
        node = view.node(name)
        if node is None:
            text, since = "there is no such node any more", ""
        else:
            conditions = {each["type"]: each for each in (node.get("status") or {}).get("conditions") or []}
            ready = conditions.get("Ready") or {}
            if ready.get("status", "True") == "True":
                continue
            text, since = str(ready.get("message") or ready.get("reason")), str(ready.get("lastTransitionTime") or "")
        yield Hit(
            place,
            f"{name} does not answer",
            "{} is on a node that does not answer",
            [Evidence("node", name, since, text)],
            f"bring {name} back (systemctl status kubelet there); the run goes on elsewhere where its files allow it",
        )
    remedy = "bring {} back (systemctl status kubelet there), or add a node"
    yield from _barred(view, "node_not_ready", "{} would do and is not Ready", remedy)


def node_pressure(view: View) -> Iterator[Hit]:
    """A node is short of memory, disk or processes, and takes no pods."""
    remedy = "make room on {}: kubectl describe node says of what it has too little"
    yield from _barred(view, "node_pressure", "{} is short of memory, disk or processes", remedy)


def cordoned(view: View) -> Iterator[Hit]:
    """A node that would do is cordoned."""
    yield from _barred(view, "cordoned", "{} would do and is cordoned", "kubectl uncordon {}, or add a node")


def tainted(view: View) -> Iterator[Hit]:
    """A node that would do has a taint that the pod does not tolerate."""
    remedy = "remove the taint from {}, or give the role tolerations in workloads_trainings"
    yield from _barred(view, "tainted", "{} would do and has a taint that it does not tolerate", remedy)


def gpu_skew(view: View) -> Iterator[Hit]:
    """A node's driver was changed under the loaded one, and its GPUs are not offered."""
    remedy = "restart {}, or playbooks/gpu_driver.yml: its loaded driver is not the installed one"
    yield from _barred(view, "gpu_skew", "the GPUs of {} are not offered: its driver was changed under it", remedy)


def gpu_unhealthy(view: View) -> Iterator[Hit]:
    """GPUs of a node are unhealthy."""
    remedy = "playbooks/gpu_recover.yml on {}; trainyard gpus shows who holds which"
    yield from _barred(view, "gpu_unhealthy", "GPUs of {} are unhealthy", remedy)
    for place, pod in view.pods.items():
        for status in (pod.get("status") or {}).get("containerStatuses") or []:
            sick = [
                device
                for resource in status.get("allocatedResourcesStatus") or []
                for device in resource.get("resources") or []
                if device.get("health") == "Unhealthy"
            ]
            if sick and "running" in (status.get("state") or {}):
                node = str(pod["spec"].get("nodeName"))
                names = ", ".join(str(each.get("resourceID", "?")) for each in sick)
                yield Hit(
                    place,
                    f"its GPU on {node} is unhealthy",
                    "{} computes on a GPU that is unhealthy",
                    [Evidence("node", node, "", f"{len(sick)} GPU(s) of {place} unhealthy: {names}")],
                    f"playbooks/gpu_recover.yml on {node}; the run goes on from its last checkpoint",
                )


def gpu_missing(view: View) -> Iterator[Hit]:
    """No node has a GPU, or one that should offers none."""
    yield from _barred(
        view, "gpu_missing", "{} should have GPUs, and offers none", "look at the pods of the device plugin on {}"
    )
    for each in of(view, "never_fits"):
        if each.without_gpus:
            yield Hit(
                each.place,
                "it asks for a GPU, and no node has any",
                EFFECT,
                said(each),
                "put a host with GPUs into gpu_nodes, or train without: gpus: 0 in workloads_trainings",
            )
