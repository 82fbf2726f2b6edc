"""Read a list in pages and reduce its objects while reading.

Parts: the reduction; the pages. The reduction drops the fields of listed objects that no page shows. So a user's
objects cannot fill the console's memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.untrusted import items, mapping
from ..kube.api import KubeError, Object
from ..trainings.names import (
    ATTEMPT_ANNOTATION,
    CONTAINER,
    DECIDING_ANNOTATION,
    HASH_ANNOTATION,
    MANIFEST_KEY,
    TOPOLOGY_ANNOTATION,
    WORKLOAD_ANNOTATION,
)
from .shares import Held, weight
from .user_api import LARGER, Client, parsed

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


LIMITS = (500, 100, 20, 4)
"""Objects per page; smaller pages are tried if an answer exceeds its size limit."""
MOST = 20_000
"""Maximum objects of a list."""


class Paged:
    """A list that is being read.

    :param query: selectors.
    """

    def __init__(self, client: Client, token: str, path: str, query: Sequence[tuple[str, str]]) -> None:
        self._client, self._token, self._path, self._query = client, token, path, dict(query)
        self._items: list[Object] = []
        self._kind: dict[str, str] = {}
        self._limits = list(LIMITS)
        self._more = self._version = ""
        self.ended = False
        self.bytes = 0
        self.held = Held(path)

    @property
    def listed(self) -> Object:
        """The list in the format of the API server."""
        return {**self._kind, "items": self._items, "metadata": {"resourceVersion": self._version}}

    async def read_on(self) -> None:
        """Read one more page.

        :raises LoginEnded, KubeError: as `Client.get`; status `FULL`, see `Held`.
        """
        query = {**self._query, "limit": str(self._limits[0])} | ({"continue": self._more} if self._more else {})
        status, text = await self._client.call(self._token, "GET", self._path, query=query)
        if status == 0 and LARGER in text and len(self._limits) > 1:
            del self._limits[0]
            return
        listed = parsed(status, text, self._path)
        self.bytes += len(text)
        page = [slim(each) for each in listed.get("items") or ()]
        self.held.take(weight(page))
        self._items += page
        if len(self._items) > MOST:
            raise KubeError(f"{self._path}: there are more than {MOST} objects.", status=500)
        meta = listed.get("metadata") or {}
        # All pages show the list at the version of the first page.
        self._version = self._version or str(meta.get("resourceVersion") or "")
        self._kind = {key: str(listed.get(key, "")) for key in ("apiVersion", "kind")}
        self._more = str(meta.get("continue") or "")
        self.ended = not self._more


async def whole(client: Client, token: str, path: str, query: Mapping[str, str]) -> Object:
    """Read all pages of a list.

    :raises LoginEnded, KubeError: as `Client.get`.
    """
    paged = Paged(client, token, path, list(query.items()))
    while not paged.ended:
        await paged.read_on()
    return paged.listed
