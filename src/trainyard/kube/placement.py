"""Decide where a pod can run: requests, free resources of a node, and rules that exclude a node.

The rules are those of the scheduler's filters NodeResourcesFit, NodeUnschedulable, TaintToleration, NodeAffinity and
VolumeBinding (kubernetes/kubernetes, pkg/scheduler/framework/plugins).

The first part reads resource quantities in Kubernetes' notation: `500m`, `2`, `1Gi`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.untrusted import at, number, whole
from .api import Object

_SUFFIXES = {
    "n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60,
}  # fmt: skip
"""https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/"""

_FORM = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([a-zA-Z]{0,2})")
BYTES = ("memory", "ephemeral-storage", "storage")
"""Resources that are counted in bytes, in addition to `hugepages-*`."""


def amount(quantity: object) -> float:
    """Convert a quantity to a number of CPUs, bytes or pieces.

    :raises ValueError: it is not a quantity.
    """
    match = _FORM.fullmatch(str(quantity).strip())
    value = number(match[1]) if match else None
    if match is None or value is None or match[2] not in _SUFFIXES:
        raise ValueError(f"{quantity!r} is not a quantity")
    return value * _SUFFIXES[match[2]]


def pieces(quantity: object) -> int:
    """Convert a quantity of countable items, such as GPUs, to an integer; 0 if it is invalid."""
    try:
        return max(0, math.floor(amount(quantity)))
    except (ValueError, OverflowError):
        return 0


def shown(resource: str, number: float) -> str:
    """Format an amount of a resource for display: `1.5`, `3.2Gi`."""
    if resource in BYTES or resource.startswith("hugepages-"):
        for unit in ("Ti", "Gi", "Mi", "Ki"):
            if abs(number) >= _SUFFIXES[unit]:
                return f"{round(number / _SUFFIXES[unit], 1):g}{unit}"
    return f"{round(number, 3):g}"


PODS = "pods"
"""Resource that counts pods; each pod takes one."""
OVER = ("Succeeded", "Failed")
"""Phases in which a pod holds no resources."""
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
"""Taint of a cordoned node."""
_KEEPS_AWAY = ("NoSchedule", "NoExecute")


@dataclass(frozen=True)
class Bar:
    """A reason other than resources why a node cannot run a pod.

    :param kind: `cordon`, `taint`, `selector`, `volume`.
    :param detail: name of the node (`cordon`) or volume, the taint as `key=value:effect`, or the unmet selector.
    """

    kind: str
    detail: str


def requests(pod: Object) -> dict[str, float]:
    """Return the resources that the scheduler counts for a pod, including one `pods`.

    Per resource, that is the sum over its containers, or the request of an init container if that is larger.
    """
    spec = pod.get("spec") or {}
    # A sidecar is an init container that keeps running next to the containers.
    sidecars = [each for each in spec.get("initContainers") or [] if each.get("restartPolicy") == "Always"]
    first = [each for each in spec.get("initContainers") or [] if each.get("restartPolicy") != "Always"]
    total = _sum(_asked(each) for each in [*(spec.get("containers") or []), *sidecars])
    for each in first:
        for resource, asked in _asked(each).items():
            total[resource] = max(total.get(resource, 0.0), asked)
    # Pod-level resources (Kubernetes' PodLevelResources) override those of the containers.
    total |= _asked(spec)
    for resource, quantity in (spec.get("overhead") or {}).items():
        total[resource] = total.get(resource, 0.0) + amount(quantity)
    return {**{name: number for name, number in total.items() if number}, PODS: 1.0}


def _asked(part: Mapping[str, Any]) -> dict[str, float]:
    resources = part.get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: amount(quantity) for name, quantity in asked.items()}


def _sum(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for part in parts:
        for name, asked in part.items():
            total[name] = total.get(name, 0.0) + asked
    return total


def allocatable(node: Object) -> dict[str, float]:
    """Return the resources of a node that all its pods together can use."""
    found = (node.get("status") or {}).get("allocatable") or {}
    return {name: amount(quantity) for name, quantity in found.items()}


def on_node(name: str, pods: Iterable[Object]) -> list[Object]:
    """Return the pods that hold resources of a node."""
    return [
        pod
        for pod in pods
        if (pod.get("spec") or {}).get("nodeName") == name and (pod.get("status") or {}).get("phase") not in OVER
    ]


def by_node(pods: Iterable[Object]) -> dict[str, list[Object]]:
    """Group pods by node name in one pass; filtering all pods for each node would take nodes times pods steps."""
    found: dict[str, list[Object]] = {}
    for pod in pods:
        found.setdefault(str((pod.get("spec") or {}).get("nodeName") or ""), []).append(pod)
    return found


def left(node: Object, pods: Iterable[Object]) -> dict[str, float]:
    """Return the free resources of a node.

    :param pods: pods of the whole cluster, or only of this node.
    """
    taken = _sum(requests(pod) for pod in on_node(node["metadata"]["name"], pods))
    return {name: number - taken.get(name, 0.0) for name, number in allocatable(node).items()}


def lacking(asked: Mapping[str, float], there: Mapping[str, float]) -> list[str]:
    """Return the names of the resources that are insufficient."""
    # Sums of CPU fractions are not exact.
    return [name for name, number in asked.items() if number > there.get(name, 0.0) + 1e-6]


def unplaced(pod: Mapping[str, Any]) -> str | None:
    """Return the scheduler's message for an unschedulable pod; None if the pod has a node or is not yet processed."""
    for condition in (pod.get("status") or {}).get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return str(condition.get("message", "")) if condition.get("reason") == "Unschedulable" else None
    return None


def bars(pod: Object, node: Object, volumes: Sequence[Object] = ()) -> Iterator[Bar]:
    """Yield the reasons other than resources why a node cannot run a pod.

    :param volumes: the PersistentVolumes of the pod's claims.
    """
    spec = node.get("spec") or {}
    if spec.get("unschedulable") and not _tolerates(pod, {"key": UNSCHEDULABLE, "effect": "NoSchedule"}):
        yield Bar("cordon", node["metadata"]["name"])
    for taint in spec.get("taints") or []:
        if taint.get("effect") in _KEEPS_AWAY and taint["key"] != UNSCHEDULABLE and not _tolerates(pod, taint):
            yield Bar("taint", written(taint))
    wanted = pod["spec"].get("nodeSelector") or {}
    labels = node["metadata"].get("labels") or {}
    wrong = [f"{key}={value}" for key, value in wanted.items() if labels.get(key) != value]
    affinity = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if affinity and not in_terms(node, affinity.get("nodeSelectorTerms") or []):
        wrong.append("node affinity: " + _terms(affinity.get("nodeSelectorTerms") or []))
    if wrong:
        yield Bar("selector", ", ".join(wrong))
    for volume in volumes:
        required = ((volume.get("spec") or {}).get("nodeAffinity") or {}).get("required")
        if required and not in_terms(node, required.get("nodeSelectorTerms") or []):
            yield Bar("volume", volume["metadata"]["name"])


def written(taint: Mapping[str, Any]) -> str:
    """Return a taint in kubectl's notation."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint.get('effect', '')}"


def _tolerates(pod: Object, taint: Mapping[str, Any]) -> bool:
    for each in pod["spec"].get("tolerations") or []:
        same_effect = not each.get("effect") or each["effect"] == taint.get("effect")
        if each.get("operator", "Equal") == "Exists":
            same = not each.get("key") or each["key"] == taint["key"]
        else:
            same = each.get("key") == taint["key"] and each.get("value", "") == taint.get("value", "")
        if same_effect and same:
            return True
    return False


def in_terms(node: Object, terms: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a node matches one of a node selector's terms. All requirements of a term must hold."""
    return any(
        all(_holds(node, each, "labels") for each in term.get("matchExpressions") or [])
        and all(_holds(node, each, "fields") for each in term.get("matchFields") or [])
        for term in terms
        if term.get("matchExpressions") or term.get("matchFields")
    )


def _holds(node: Object, wanted: Mapping[str, Any], of: str) -> bool:
    meta = node["metadata"]
    known = meta.get("labels") or {} if of == "labels" else {"metadata.name": meta["name"]}
    value, values, operator = known.get(wanted["key"]), wanted.get("values") or [], wanted.get("operator")
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if operator == "NotIn":
        return value not in values
    if operator in ("Gt", "Lt"):
        there, bound = whole(value), whole(at(values, 0))
        if there is None or bound is None:
            return False
        return there > bound if operator == "Gt" else there < bound
    return value in values


def _terms(terms: Sequence[Mapping[str, Any]]) -> str:
    return " or ".join(
        " and ".join(
            f"{each['key']} {each.get('operator', 'In')} {', '.join(each.get('values') or [])}".rstrip()
            for each in [*(term.get("matchExpressions") or []), *(term.get("matchFields") or [])]
        )
        for term in terms
    )
