"""A list in pages, of whose objects what no page shows is dropped as they come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.trainyard.core.untrusted import items, mapping
from ansible.module_utils.trainyard.kube.api import KubeError, Object
from ansible.module_utils.trainyard.training.names import MANIFEST_KEY

from .api import LARGER, Client, parsed

LIMITS = (500, 100, 20, 4)
"""Objects of a page; of those that are too large for the limit of an answer, fewer."""
MOST = 20_000
"""Objects of a list."""
ANNOTATIONS = ("trainyard.dev/", "jobset.sigs.k8s.io/", "storageclass.kubernetes.io/")
"""Beginnings of the annotations that a reader looks at."""
_CONTAINER = ("name", "image", "resources", "restartPolicy")
_POD = (
    "nodeName", "nodeSelector", "affinity", "tolerations", "overhead", "resources", "schedulingGates", "schedulerName",
    "priority", "priorityClassName", "restartPolicy", "terminationGracePeriodSeconds",
)  # fmt: skip
_STATUS = ("containerID", "imageID", "volumeMounts", "user", "resources")
_NODE = ("images", "volumesInUse", "volumesAttached", "config")


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

    @property
    def listed(self) -> Object:
        """As the API server lists it."""
        return {**self._kind, "items": self._items, "metadata": {"resourceVersion": self._version}}

    async def read_on(self) -> None:
        """Read one more page.

        :raises LoginEnded, KubeError: as `Client.get`.
        """
        query = {**self._query, "limit": str(self._limits[0])} | ({"continue": self._more} if self._more else {})
        status, text = await self._client.call(self._token, "GET", self._path, query=query)
        if status == 0 and LARGER in text and len(self._limits) > 1:
            del self._limits[0]
            return
        listed = parsed(status, text, self._path)
        self.bytes += len(text)
        self._items += [slim(each) for each in listed.get("items") or ()]
        if len(self._items) > MOST:
            raise KubeError(f"{self._path}: there are more than {MOST} objects.", status=500)
        meta = listed.get("metadata") or {}
        # Of all pages the list is as it was for the first.
        self._version = self._version or str(meta.get("resourceVersion") or "")
        self._kind = {key: str(listed.get(key, "")) for key in ("apiVersion", "kind")}
        self._more = str(meta.get("continue") or "")
        self.ended = not self._more


async def whole(client: Client, token: str, path: str, query: Mapping[str, str]) -> Object:
    """All of a list.

    :raises LoginEnded, KubeError: as `Client.get`.
    """
    paged = Paged(client, token, path, list(query.items()))
    while not paged.ended:
        await paged.read_on()
    return paged.listed


def slim(obj: Object) -> Object:
    """An object of a list without what no page shows: what only machines read, environments, images of nodes."""
    found = {**obj, "metadata": _meta(mapping(obj.get("metadata")))}
    spec, status = mapping(obj.get("spec")), mapping(obj.get("status"))
    if "containers" in spec:
        found["spec"] = _pod(spec)
        found["status"] = {
            key: [_without(each, _STATUS) for each in items(value)] if key.endswith("ontainerStatuses") else value
            for key, value in status.items()
        }
    elif "nodeInfo" in status:
        found["status"] = _without(status, _NODE)
    elif MANIFEST_KEY in (data := mapping(obj.get("data"))):
        found["data"] = _without(data, (MANIFEST_KEY,))
    return found


def _meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in mapping(meta.get("annotations")).items() if key.startswith(ANNOTATIONS)}
    rest = _without(meta, ("managedFields", "annotations", "generateName"))
    return {**rest, "annotations": kept} if kept else rest


def _pod(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What a pod asks for and where it may run."""
    found = {key: spec[key] for key in _POD if key in spec}
    for kind in ("containers", "initContainers"):
        if kind in spec:
            found[kind] = [{key: each[key] for key in _CONTAINER if key in each} for each in items(spec[kind])]
    claims = [each for each in items(spec.get("volumes")) if "persistentVolumeClaim" in mapping(each)]
    return {**found, "volumes": claims} if claims else found


def _without(found: Any, names: Sequence[str]) -> dict[str, Any]:
    return {key: value for key, value in mapping(found).items() if key not in names}
