"""A client of a Kubernetes API server: plain dictionaries in and out, each call with a timeout.

Paths and kinds come from the server's own discovery. So a kind is known as soon as its definition is applied.

Parts: responses; the client. A response may come from a program in place of the API server. So the code bounds its size
and checks it for the expected form.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from ..core.errors import TrainyardError
from ..core.untrusted import line
from .pod_log import end_of, says_no_log

MOST_BYTES = 2**27
"""Largest response in bytes: 5,000 pods of 8 KB are a third of that."""


class KubeError(TrainyardError):
    """The API server refused a call or did not answer.

    :param status: HTTP status; 0 if no answer came.
    :param final: retries cannot succeed: the server's certificate is refused, or the kubeconfig is damaged.
    """

    def __init__(self, message: str, *, status: int, remedy: str = "", final: bool = False) -> None:
        super().__init__(message, remedy=remedy, status=status)
        self.status = status
        self.final = final

    @property
    def no_answer(self) -> bool:
        """Return whether the server is absent, maybe temporarily. Check mode then plans for a future server."""
        return self.status == 0 and not self.final

    @property
    def no_log(self) -> bool:
        """Return whether a container has no log yet. Any other status 400 of a log is an error."""
        return says_no_log(self.status, self.message)

    @property
    def transient(self) -> bool:
        """Return whether a retry may succeed.

        That is so without an answer, on overload, while a webhook or etcd starts (status 500), and while the server has
        not read its own roles yet (403).
        """
        busy = self.status in (429, 502, 503, 504)
        starts = self.status == 500 and any(word in self.message for word in ("webhook", "etcdserver: ", "rpc error: "))
        roles_unread = self.status == 403 and "RBAC: " in self.message and "not found" in self.message
        return self.no_answer or busy or starts or roles_unread


def bounded(read: Callable[[int], bytes]) -> str:
    """Return a response as text.

    :param read: returns at most the given number of bytes.
    :raises KubeError: the response has more than `MOST_BYTES`.
    """
    data = read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise KubeError(
            f"The API server's answer has more than {MOST_BYTES >> 20} MiB.",
            status=0,
            remedy="Check that the address in the kubeconfig is the API server's, not that of another program.",
            final=True,
        )
    return data.decode(errors="replace")


def document(text: str, what: str) -> dict[str, Any]:
    """Parse a response that contains one JSON object.

    :param what: the object or action, for the error message.
    :raises KubeError: the response is not a JSON object, but for example a proxy's page.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise KubeError(
            f"{what}: the answer is not a JSON object.",
            status=0,
            remedy="Check that the kubeconfig contains the API server's address, and that no proxy answers instead.",
            final=True,
        )
    return found


def member(found: Mapping[str, Any], key: str, what: str) -> list[dict[str, Any]]:
    """Return the list of objects under a key of a response.

    :raises KubeError: the response has no such list.
    """
    each = found.get(key)
    if not isinstance(each, list) or not all(isinstance(one, dict) for one in each):
        raise KubeError(f"{what}: the answer has no list {key}.", status=0, final=True)
    return each


FIELD_MANAGER = "trainyard"
APPLY_PATCH = "application/apply-patch+yaml"
SHOWN = 1_000
"""Characters of the server's reason that an error quotes. A reason without a message is usually a proxy's page."""

Object = dict[str, Any]
Transport = Callable[[str, str, list[tuple[str, str]], Any, str], tuple[int, str]]
"""(method, path, query, body, content type) -> (status, text). Status 0: no answer; the text is the reason."""
Stream = Callable[[str, list[tuple[str, str]]], Iterator[bytes]]
"""(path, query) -> the chunks of a response as they arrive. Raises KubeError, with status 0 if it breaks off."""


def describe(obj: Mapping[str, Any]) -> str:
    """Return the name of an object for errors and plans: `Deployment jobset-system/jobset-controller-manager`."""
    meta = obj.get("metadata") or {}
    place = f"{meta['namespace']}/" if meta.get("namespace") else ""
    return f"{obj.get('kind', '?')} {place}{meta.get('name', '?')}"


class Api:
    """A client of one API server.

    :param transport: performs a single call; `connection.connect` creates one.
    :param stream: performs a call whose response is read as it arrives.
    """

    def __init__(self, transport: Transport, stream: Stream | None = None) -> None:
        self._transport = transport
        self._stream = stream
        self._kinds: dict[str, dict[str, tuple[str, bool]]] = {}

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        what: str = "",
    ) -> str:
        """Send one request and return the text of the response.

        :param what: the object or action, for the error message.
        :raises KubeError: the status is not 2xx, or there is no answer.
        """
        pairs = [(key, str(value)) for key, value in (query or {}).items() if value is not None]
        status, text = self._transport(method, path, pairs, body, content_type)
        if 200 <= status < 300:
            return text
        raise refusal(what or path, status, text)

    def path(self, api_version: str, kind: str, namespace: str | None = None, name: str | None = None) -> str:
        """Return the path of a kind's collection or of one object.

        :raises KubeError: status 404 if the server does not serve the kind.
        """
        base = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        if kind not in self._kinds.get(api_version, {}):
            what = f"{api_version} {kind}"
            found = member(document(self.call("GET", base, what=what), what), "resources", what)
            self._kinds[api_version] = {
                each["kind"]: (each["name"], bool(each.get("namespaced"))) for each in found if "/" not in each["name"]
            }
        if kind not in self._kinds[api_version]:
            raise KubeError(f"The API server does not serve {api_version} {kind}.", status=404)
        plural, namespaced = self._kinds[api_version][kind]
        scope = f"/namespaces/{quote(namespace)}" if namespaced and namespace else ""
        return f"{base}{scope}/{plural}" + (f"/{quote(name)}" if name else "")

    def object_path(self, obj: Mapping[str, Any]) -> str:
        meta = obj["metadata"]
        return self.path(obj["apiVersion"], obj["kind"], meta.get("namespace", "default"), meta["name"])

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Object | None:
        """Return one object, or None if it or its kind does not exist."""
        try:
            path = self.path(api_version, kind, namespace, name)
            return document(self.call("GET", path, what=f"{kind} {name}"), f"{kind} {name}")
        except KubeError as error:
            if error.status == 404:
                return None
            raise

    def list(
        self, api_version: str, kind: str, namespace: str | None = None, *, labels: str | None = None
    ) -> list[Object]:
        """Return the objects of a kind, in all namespaces if none is given; empty if the kind is unknown.

        :param labels: label selector.
        """
        try:
            path = self.path(api_version, kind, namespace)
            what = f"list of {kind}"
            found = document(self.call("GET", path, query={"labelSelector": labels}, what=what), what)
        except KubeError as error:
            if error.status == 404:
                return []
            raise
        return [{"apiVersion": api_version, "kind": kind, **item} for item in member(found, "items", what)]

    def apply(self, obj: Mapping[str, Any], *, dry_run: bool = False) -> Object:
        """Apply an object on the server side under trainyard's field manager.

        :return: the object as stored, or in a dry run as it would be stored.
        """
        query = {"fieldManager": FIELD_MANAGER, "force": "true", "dryRun": "All" if dry_run else None}
        path = self.object_path(obj)
        answer = self.call("PATCH", path, query=query, body=obj, content_type=APPLY_PATCH, what=describe(obj))
        return document(answer, describe(obj))

    def create(self, obj: Mapping[str, Any], *, dry_run: bool = False) -> Object:
        """Create an object that must not exist yet.

        :return: the object as stored, or in a dry run as it would be stored.
        :raises KubeError: status 409 if the name is taken, which the server checks last.
        """
        query = {"fieldManager": FIELD_MANAGER, "dryRun": "All" if dry_run else None}
        meta = obj["metadata"]
        path = self.path(obj["apiVersion"], obj["kind"], meta.get("namespace", "default"))
        answer = self.call("POST", path, query=query, body=obj, what=describe(obj))
        return document(answer, describe(obj))

    def delete(
        self,
        api_version: str,
        kind: str,
        name: str,
        namespace: str | None = None,
        *,
        grace: int | None = None,
        uid: str = "",
    ) -> bool:
        """Delete an object and, in the foreground, its dependents; return False if it did not exist.

        :param grace: seconds that its processes get to end; None uses the object's own value.
        :param uid: delete only the object with this UID, not a newer one of the same name (status 409).
        """
        body: Object = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Foreground"}
        if grace is not None:
            body["gracePeriodSeconds"] = grace
        if uid:
            body["preconditions"] = {"uid": uid}
        try:
            self.call("DELETE", self.path(api_version, kind, namespace, name), body=body, what=f"{kind} {name}")
        except KubeError as error:
            if error.status == 404:
                return False
            raise
        return True

    def pieces(self, path: str, query: Mapping[str, Any], *, what: str = "") -> Generator[bytes, None, None]:
        """Yield the chunks of a response as they arrive; without a stream, yield it as a whole.

        :raises KubeError: as `call`, and status 0 if the response breaks off.
        """
        if self._stream is None:
            yield self.call("GET", path, query=query, what=what).encode("utf-8", "surrogateescape")
        else:
            yield from self._stream(path, [(key, str(value)) for key, value in query.items() if value is not None])

    def log_pieces(
        self, namespace: str, pod: str, *, tail: int | None = None, since: str = "", **flags: bool
    ) -> Generator[bytes, None, None]:
        """Yield the chunks of a pod's log as they arrive, as input for `pod_log.Lines`.

        :param tail: number of last lines; None for the whole log.
        :param since: time of a line; the log begins in that second. Empty to start at the beginning.
        :param flags: `timestamps`, `follow` (until the container ends), `previous` (before its last restart).
        """
        query = {"tailLines": tail, "sinceTime": since or None}
        query |= {name: "true" for name, wanted in flags.items() if wanted}
        return self.pieces(self.path("v1", "Pod", namespace, pod) + "/log", query, what=f"log of pod {pod}")

    def log(self, namespace: str, pod: str, *, tail: int | None = None, previous: bool = False) -> str:
        """Return the end of a pod's log as text; empty if the pod is gone or its container has not started."""
        try:
            return end_of(self.log_pieces(namespace, pod, tail=tail, previous=previous))
        except KubeError as error:
            if error.status == 404 or error.no_log:
                return ""
            raise


def refusal(what: str, status: int, text: str) -> KubeError:
    """Return the error for an unsuccessful response; status 0 means that no answer came."""
    if status == 0:
        return KubeError(
            f"The API server does not answer: {text}.",
            status=0,
            remedy="Check that the control plane runs and that the kubeconfig contains its address.",
        )
    return KubeError(f"{what}: {_reason(text)} (status {status}).", status=status)


def documents(text: str) -> Iterator[Object]:
    """Yield the objects of a YAML text with any number of documents. Lists are unpacked, empty documents skipped."""
    import yaml

    for each in yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if each and each.get("kind") == "List":
            yield from each["items"]
        elif each:
            yield each


def _reason(text: str) -> str:
    try:
        return line(json.loads(text).get("message") or text, SHOWN)
    except (ValueError, AttributeError, RecursionError):
        return line(text, SHOWN)
