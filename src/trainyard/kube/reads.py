"""Cluster reads without I/O: a reader yields its requests, and a driver sends them.

A reader is a generator. It yields a `Get` and receives the response: parsed JSON, text if `text` is set, or an
`Unread`. It may yield a tuple of requests, which are sent concurrently, and receives a tuple of responses. It returns
its result. Modules, the program and the console share the readers, each with its own driver. The driver here uses an
`Api` and blocks.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote

from .api import Api, KubeError, Object, document, member
from .pod_log import end_of, says_no_log

T = TypeVar("T")
AT_ONCE = 8
"""Maximum number of concurrent requests of the driver."""


@dataclass(frozen=True)
class Get:
    """A read-only request.

    :param path: absolute path on the server, with quoted parts (`path` builds one).
    :param query: query parameters, none of them repeated.
    :param text: whether the response is text, such as a log, instead of JSON.
    :param accept: media type of the response, such as the server's tables; empty for plain JSON. Only the console sets
        it.
    """

    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    text: bool = False
    accept: str = ""


@dataclass(frozen=True)
class Unread:
    """A placeholder for a missing response.

    :param path: path of the request.
    :param status: HTTP status; 0 if there was no answer, or the answer was not JSON.
    :param reason: one sentence without a full stop.
    """

    path: str
    status: int
    reason: str

    @property
    def absent(self) -> bool:
        """Return whether the object or its kind does not exist."""
        return self.status == 404

    @property
    def no_log(self) -> bool:
        """Return whether a container has no log yet."""
        return says_no_log(self.status, self.reason)

    @property
    def refused(self) -> bool:
        """Return whether the caller is not permitted to read it."""
        return self.status in (401, 403)


Reader = Generator[Get | tuple[Get, ...], Any, T]


def path(version: str, plural: str, namespace: str = "", name: str = "", part: str = "") -> str:
    """Return the path of a collection or an object.

    :param version: API version, such as `v1` or `batch/v1`.
    :param plural: the resource, such as `pods`.
    :param part: subresource of the object, such as `log`.
    """
    scope = ["namespaces", namespace] if namespace else []
    parts = ["apis" if "/" in version else "api", *version.split("/"), *scope, plural, name, part]
    return "/" + "/".join(quote(each, safe="") for each in parts if each)


def listing(version: str, plural: str, namespace: str = "", *, labels: str = "", fields: str = "") -> Get:
    """Return a request for all objects of a kind.

    :param namespace: empty for all namespaces.
    :param labels: label selector.
    :param fields: field selector.
    """
    selectors = {"labelSelector": labels, "fieldSelector": fields}
    return Get(path(version, plural, namespace), {name: value for name, value in selectors.items() if value})


def log(namespace: str, pod: str, *, tail: int, previous: bool = False, stamped: bool = False) -> Get:
    """Return a request for the last lines of a pod's log; the response is `Unread.no_log` if it has none yet.

    :param tail: number of lines.
    :param previous: read the log of the container before its last restart.
    :param stamped: prefix each line with its time and a space.
    """
    flags = {name: "true" for name, wanted in (("previous", previous), ("timestamps", stamped)) if wanted}
    return Get(path("v1", "pods", namespace, pod, "log"), {"tailLines": str(tail), **flags}, text=True)


def objects(answer: Any) -> list[Object] | Unread:
    """Return the objects of a list response, each with its kind; empty if the server does not know the kind."""
    if isinstance(answer, Unread):
        return [] if answer.absent else answer
    kind = {"apiVersion": answer.get("apiVersion", ""), "kind": str(answer.get("kind", "")).removesuffix("List")}
    return [{**kind, **each} for each in member(answer, "items", f"list of {kind['kind']}")]


def read(api: Api, reader: Reader[T]) -> T:
    """Run a reader with an `Api` and return its result.

    :raises KubeError: the connection cannot be used, so that retries cannot succeed.
    """
    answer: Any = None
    with ThreadPoolExecutor(AT_ONCE) as pool:
        while True:
            try:
                wanted = reader.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(wanted, Get):
                answer = ask(api, wanted)
            else:
                answer = tuple(pool.map(lambda each: ask(api, each), wanted))


def ask(api: Api, wanted: Get) -> Any:
    """Send one request with an `Api`.

    :raises KubeError: as `read`.
    """
    try:
        if wanted.text:
            return end_of(api.pieces(wanted.path, wanted.query))
        text = api.call("GET", wanted.path, query=wanted.query)
    except KubeError as error:
        if error.final:
            raise
        return Unread(wanted.path, error.status, error.message.rstrip("."))
    try:
        return document(text, wanted.path)
    except KubeError as error:
        return Unread(wanted.path, 0, error.message.rstrip("."))


def must(answer: Any) -> Any:
    """Return a response, which must not be missing.

    :raises KubeError: the response is an `Unread`.
    """
    if isinstance(answer, Unread):
        raise KubeError(f"{answer.reason}.", status=answer.status)
    return answer


def unread(answers: Sequence[Any]) -> list[Unread]:
    """Return the responses that are missing."""
    return [each for each in answers if isinstance(each, Unread)]
