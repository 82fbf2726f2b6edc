"""Talking to a Kubernetes API server: plain dictionaries in and out, every call bounded in time.

Paths and kinds come from the server's own
discovery, so that a kind whose definition was applied a second ago is known at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from ..core.untrusted import line
from .answer import KubeError, document, member
from .pod_log import end_of

FIELD_MANAGER = "trainyard"
APPLY_PATCH = "application/apply-patch+yaml"
SHOWN = 1_000
"""Characters of the server's own reason that an error quotes; one without a message is most often a proxy's page."""

Object = dict[str, Any]
Transport = Callable[[str, str, list[tuple[str, str]], Any, str], tuple[int, str]]
"""(method, path, query, body, content type) -> (status, text). Status 0: no answer, the text says why."""
Stream = Callable[[str, list[tuple[str, str]]], Iterator[bytes]]
"""(path, query) -> the pieces of a long answer as they come. Raises KubeError, status 0 when it breaks off."""


def describe(obj: Mapping[str, Any]) -> str:
    """`Deployment jobset-system/jobset-controller-manager`, the way errors and plans name an object."""
    meta = obj.get("metadata") or {}
    place = f"{meta['namespace']}/" if meta.get("namespace") else ""
    return f"{obj.get('kind', '?')} {place}{meta.get('name', '?')}"


class Api:
    """One API server.

    :param transport: does a single call; `kubeconfig.connect` makes one.
    :param stream: does a call whose answer is read as it comes.
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
        """One request; the answer's text.

        :param what: the object or action, for the error message.
        :raises KubeError: any status from 400 on, or no answer.
        """
        pairs = [(key, str(value)) for key, value in (query or {}).items() if value is not None]
        status, text = self._transport(method, path, pairs, body, content_type)
        if 200 <= status < 300:
            return text
        raise refusal(what or path, status, text)

    def path(self, api_version: str, kind: str, namespace: str | None = None, name: str | None = None) -> str:
        """Path of a kind's collection or of one object.

        :raises KubeError: status 404 when the server does not serve the kind.
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
        """One object, or None when it or its kind does not exist."""
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
        """Objects of a kind, in all namespaces when none is given; empty when the kind is unknown.

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
        """Server-side apply under the one field manager; the object as the server would keep or keeps it."""
        query = {"fieldManager": FIELD_MANAGER, "force": "true", "dryRun": "All" if dry_run else None}
        path = self.object_path(obj)
        answer = self.call("PATCH", path, query=query, body=obj, content_type=APPLY_PATCH, what=describe(obj))
        return document(answer, describe(obj))

    def create(self, obj: Mapping[str, Any], *, dry_run: bool = False) -> Object:
        """Make an object that must not be there yet; the object as the server would keep or keeps it.

        :raises KubeError: status 409 when there is one of that name, which the server looks at last.
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
        """Delete an object and, in the foreground, what it owns; False when there was none.

        :param grace: seconds that its processes get to end; None keeps the object's own.
        :param uid: delete this very object, and none that has taken its name since (status 409).
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
        """An answer in pieces as they come; a connection without a stream has it in one.

        :raises KubeError: as `call`, and status 0 when the answer breaks off.
        """
        if self._stream is None:
            yield self.call("GET", path, query=query, what=what).encode("utf-8", "surrogateescape")
        else:
            yield from self._stream(path, [(key, str(value)) for key, value in query.items() if value is not None])

    def log_pieces(
        self, namespace: str, pod: str, *, tail: int | None = None, since: str = "", **flags: bool
    ) -> Generator[bytes, None, None]:
        """A pod's log in pieces as they come, which `pod_log.Lines` takes.

        :param tail: number of last lines; None for all of it.
        :param since: time of a line; the log begins in that second. Empty for its beginning.
        :param flags: `timestamps`, `follow` (until the container ends), `previous` (before its last restart).
        """
        query = {"tailLines": tail, "sinceTime": since or None}
        query |= {name: "true" for name, wanted in flags.items() if wanted}
        return self.pieces(self.path("v1", "Pod", namespace, pod) + "/log", query, what=f"log of pod {pod}")

    def log(self, namespace: str, pod: str, *, tail: int | None = None, previous: bool = False) -> str:
        """The end of a pod's log as text; empty when the pod is gone or its container has not started."""
        try:
            return end_of(self.log_pieces(namespace, pod, tail=tail, previous=previous))
        except KubeError as error:
            if error.status == 404 or error.no_log:
                return ""
            raise


def refusal(what: str, status: int, text: str) -> KubeError:
    """The error for an answer without success; status 0 where no answer came."""
    if status == 0:
        return KubeError(
            f"The API server does not answer: {text}.",
            status=0,
            remedy="Check that the control plane runs and that the kubeconfig names its address.",
        )
    return KubeError(f"{what}: {_reason(text)} (status {status}).", status=status)


def documents(text: str) -> Iterator[Object]:
    """The objects of a manifest with any number of documents; lists are unpacked, empty ones skipped."""
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
