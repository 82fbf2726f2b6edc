"""Reduce the objects of a snapshot to the fields that rules need, without environments of containers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..kube.api import Object
from ..kube.placement import OVER
from ..kube.reads import Unread
from ..trainings.logs import Event, last
from ..trainings.runs import seconds_left

_META = ("name", "namespace", "uid", "labels", "creationTimestamp", "deletionTimestamp", "ownerReferences")
_POD = ("nodeName", "nodeSelector", "affinity", "tolerations", "overhead", "resources", "schedulingGates")
SYSTEMS = ("kube-system", "jobset-system", "calico-system", "trainyard-system")
"""Namespaces whose pods rules check for health; of other pods only the resources they hold matter."""


def plain(obj: Object | None) -> Object | None:
    """Return an object without managed fields, last-applied annotations and environments of containers."""
    if obj is None:
        return None
    meta = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    annotations = {
        key: value
        for key, value in (meta.get("annotations") or {}).items()
        if not key.endswith("last-applied-configuration")
    }
    found = {**obj, "metadata": {**meta, **({"annotations": annotations} if "annotations" in meta else {})}}
    return _without_environment(found)


def parts(read: Mapping[str, list[Object] | Unread], run: str) -> dict[str, list[Object] | Unread]:
    """Return the parts of a snapshot in their reduced form."""
    found: dict[str, list[Object] | Unread] = {}
    for name, value in read.items():
        if isinstance(value, Unread):
            found[name] = value
        elif name == "everyone":
            found[name] = [_other(pod) for pod in value if _matters(pod)]
        elif name == "nodes":
            found[name] = [_node(each) for each in value]
        else:
            found[name] = [each for each in map(plain, value) if each is not None]
    return found


def progress(said: Sequence[Event]) -> Sequence[float | None]:
    """Return the progress of a run: step, total steps, and seconds left."""
    step = last(said, "step")
    return [step.get("step"), step.get("steps_total"), seconds_left(step)]


def _matters(pod: Object) -> bool:
    holds = pod["spec"].get("nodeName") and (pod.get("status") or {}).get("phase") not in OVER
    return bool(holds) or pod["metadata"]["namespace"] in SYSTEMS


def _other(pod: Object) -> Object:
    """Return the resources that another pod holds; for a system pod also its status."""
    meta = {key: value for key, value in pod["metadata"].items() if key in _META}
    spec = {key: value for key, value in pod["spec"].items() if key in _POD}
    spec |= {
        kind: [_container(each) for each in pod["spec"][kind]]
        for kind in ("containers", "initContainers")
        if pod["spec"].get(kind)
    }
    status = pod.get("status") or {}
    if meta["namespace"] not in SYSTEMS:
        status = {key: value for key, value in status.items() if key == "phase"}
    return {"metadata": meta, "spec": spec, "status": status}


def _container(container: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in container.items() if key in ("name", "image", "resources", "restartPolicy")}


def _node(node: Object) -> Object:
    meta = {key: value for key, value in node["metadata"].items() if key in _META}
    status = node.get("status") or {}
    keep = {key: value for key, value in status.items() if key in ("allocatable", "capacity", "conditions", "nodeInfo")}
    return {"metadata": meta, "spec": node.get("spec") or {}, "status": keep}


def _without_environment(value: Any) -> Any:
    """Return the value without environments of containers, which may contain secrets."""
    if isinstance(value, Mapping):
        return {
            key: _without_environment(each)
            for key, each in value.items()
            if not (key in ("env", "envFrom") and "image" in value)
        }
    if isinstance(value, list):
        return [_without_environment(each) for each in value]
    return value
