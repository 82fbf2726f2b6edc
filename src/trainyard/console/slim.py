"""Drop the fields of listed objects that no page shows, so that a user's objects cannot fill the console's memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.untrusted import items, mapping
from ..kube.api import Object
from ..trainings.names import (
    ATTEMPT_ANNOTATION,
    CONTAINER,
    DECIDING_ANNOTATION,
    HASH_ANNOTATION,
    MANIFEST_KEY,
    TOPOLOGY_ANNOTATION,
    WORKLOAD_ANNOTATION,
)

ANNOTATIONS = (
    ATTEMPT_ANNOTATION, DECIDING_ANNOTATION, HASH_ANNOTATION, TOPOLOGY_ANNOTATION, WORKLOAD_ANNOTATION,
    "storageclass.kubernetes.io/is-default-class",
)  # fmt: skip
"""Annotations that pages use."""
TEXT = 1_000
"""Maximum characters of an annotation; this project uses at most 100."""
FLAGS = 32_000
"""Maximum characters of all flags of an object, divided among its roles; this project uses about 1,000 per role."""
MANY = 50
"""Maximum owners and claims of an object; this project uses at most ten."""
_META = (
    "name", "namespace", "uid", "labels", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
    "deletionGracePeriodSeconds",
)  # fmt: skip
_CONTAINER = ("name", "image", "resources", "restartPolicy")
_POD = (
    "nodeName", "nodeSelector", "affinity", "tolerations", "overhead", "resources", "schedulingGates", "schedulerName",
    "priority", "priorityClassName", "restartPolicy", "terminationGracePeriodSeconds",
)  # fmt: skip
_JOB = ("parallelism", "completions", "replicas", "suspend", "backoffLimit", "activeDeadlineSeconds")
_STATUS = ("containerID", "imageID", "volumeMounts", "user", "resources")
_NODE = ("images", "volumesInUse", "volumesAttached", "config")


def slim(obj: Object) -> Object:
    """Return an object without environments, images of nodes, most of its templates, and fields only programs use."""
    found = {**obj, "metadata": _meta(mapping(obj.get("metadata")))}
    spec, status = mapping(obj.get("spec")), mapping(obj.get("status"))
    if "containers" in spec:
        found["spec"] = _pod(spec)
        found["status"] = {
            key: [_without(each, _STATUS) for each in items(value)] if key.endswith("ontainerStatuses") else value
            for key, value in status.items()
        }
    elif "replicatedJobs" in spec:
        jobs = items(spec["replicatedJobs"])
        made = [_replicated(mapping(each), FLAGS // max(1, len(jobs))) for each in jobs]
        found["spec"] = {**_named(spec, _JOB), "replicatedJobs": made}
    elif "template" in spec:
        found["spec"] = _job(spec, FLAGS)
    elif "nodeInfo" in status:
        found["status"] = _without(status, _NODE)
    elif MANIFEST_KEY in (data := mapping(obj.get("data"))):
        found["data"] = _without(data, (MANIFEST_KEY,))
    return found


def _meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: str(value)[:TEXT] for key, value in _named(meta.get("annotations"), ANNOTATIONS).items()}
    owners = [
        _named(each, ("apiVersion", "kind", "name", "uid", "controller")) for each in _few(meta, "ownerReferences")
    ]
    return {
        **_named(meta, _META),
        **({"annotations": kept} if kept else {}),
        **({"ownerReferences": owners} if owners else {}),
    }


def _pod(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the requests and scheduling constraints of a pod."""
    found = _named(spec, _POD)
    for kind in ("containers", "initContainers"):
        if kind in spec:
            found[kind] = [_named(each, _CONTAINER) for each in items(spec[kind])]
    return {**found, **_claims(spec)}


def _replicated(role: Mapping[str, Any], flags: int) -> dict[str, Any]:
    """Return the kept fields of a role of a JobSet."""
    job = _job(mapping(mapping(role.get("template")).get("spec")), flags)
    return {**_named(role, ("name", "replicas")), "template": {"spec": job}}


def _job(spec: Mapping[str, Any], flags: int) -> dict[str, Any]:
    """Return the number of pods of a workload, and the flags of the training in them."""
    pod = mapping(mapping(spec.get("template")).get("spec"))
    ours = [each for each in items(pod.get("containers")) if mapping(each).get("name") == CONTAINER][:1]
    containers = [{"name": CONTAINER, "args": _flags(each.get("args"), flags)} for each in ours]
    made = {**_named(pod, ("terminationGracePeriodSeconds",)), **_claims(pod), "containers": containers}
    return {**_named(spec, _JOB), "template": {"spec": made}}


def _flags(args: Any, most: int) -> list[str]:
    """Return the first flags, up to `most` characters in total."""
    kept = []
    for each in map(str, items(args)):
        most -= len(each)
        if most < 0:
            break
        kept.append(each)
    return kept


def _claims(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Return the volumes of a pod that are claims."""
    volumes = [each for each in items(pod.get("volumes")) if "persistentVolumeClaim" in mapping(each)]
    kept = [_named(each, ("name", "persistentVolumeClaim")) for each in volumes[:MANY]]
    return {"volumes": kept} if kept else {}


def _few(found: Mapping[str, Any], name: str) -> Sequence[Any]:
    return items(found.get(name))[:MANY]


def _named(found: Any, names: Sequence[str]) -> dict[str, Any]:
    known = mapping(found)
    return {key: known[key] for key in names if key in known}


def _without(found: Any, names: Sequence[str]) -> dict[str, Any]:
    return {key: value for key, value in mapping(found).items() if key not in names}
