"""Rules for nodes: those that a pod of the run could use, and those that run its pods."""

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
    """Yield hits for a problem of nodes.

    :param what: message with `{}` for the names of the nodes.
    :param remedy: with `{}` for the name of the first node.
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
    """A node that runs a pod of the run, or that it needs, is not Ready or does not exist."""
    # Include pods that are being deleted: on a lost node they stay in that state.
    for place, pod in {**newest(view.part("pods")), **view.pods}.items() if view.goes_on else ():
        name = str((pod.get("spec") or {}).get("nodeName") or "")
        if not name or pod_state(pod)[0] == "ended":
            continue
        node = view.node(name)
        if node is None:
            text, since = "the node no longer exists", ""
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
            f"repair {name} (check systemctl status kubelet there); the run continues elsewhere if its files allow it",
        )
    remedy = "repair {} (check systemctl status kubelet there), or add a node"
    yield from _barred(view, "node_not_ready", "{} is suitable but not Ready", remedy)


def node_pressure(view: View) -> Iterator[Hit]:
    """A node is short of memory, disk or processes, and accepts no pods."""
    remedy = "free resources on {}; kubectl describe node shows which are short"
    yield from _barred(view, "node_pressure", "{} is short of memory, disk or processes", remedy)


def cordoned(view: View) -> Iterator[Hit]:
    """A suitable node is cordoned."""
    yield from _barred(view, "cordoned", "{} is suitable but cordoned", "run kubectl uncordon {}, or add a node")


def tainted(view: View) -> Iterator[Hit]:
    """A suitable node has a taint that the pod does not tolerate."""
    remedy = "remove the taint from {}, or give the role tolerations in workloads_trainings"
    yield from _barred(view, "tainted", "{} is suitable but has a taint that it does not tolerate", remedy)


def gpu_skew(view: View) -> Iterator[Hit]:
    """The loaded driver of a node differs from the installed one, so its GPUs are not offered."""
    remedy = "restart {}, or run playbooks/gpu_driver.yml"
    yield from _barred(view, "gpu_skew", "{} offers no GPUs: its loaded driver is not the installed one", remedy)


def gpu_unhealthy(view: View) -> Iterator[Hit]:
    """GPUs of a node are unhealthy."""
    remedy = "run playbooks/gpu_recover.yml on {}; trainyard gpus shows which runs hold them"
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
                    "{} uses an unhealthy GPU",
                    [Evidence("node", node, "", f"{len(sick)} GPU(s) of {place} unhealthy: {names}")],
                    f"run playbooks/gpu_recover.yml on {node}; the run continues from its last checkpoint",
                )


def gpu_missing(view: View) -> Iterator[Hit]:
    """No node has a GPU, or a node that should have GPUs offers none."""
    yield from _barred(
        view, "gpu_missing", "{} should have GPUs but offers none", "check the pods of the device plugin on {}"
    )
    for each in of(view, "never_fits"):
        if each.without_gpus:
            yield Hit(
                each.place,
                "it requests a GPU, and no node has any",
                EFFECT,
                said(each),
                "add a host with GPUs to gpu_nodes, or set gpus: 0 in workloads_trainings",
            )
