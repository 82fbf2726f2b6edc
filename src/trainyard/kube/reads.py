"""Reading a cluster without a transport: a reader says what it wants to know, and a driver asks.

A reader is a generator. It yields a `Get`, and is sent what the server answered: parsed JSON, text where `text` is
set, or an `Unread`. It may yield a tuple of several, which are asked at the same time, and is sent a tuple of answers.
It returns its result. So modules, the program and the console have the same readers, each with a driver of its own;
the one here asks by an `Api` and waits.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote

from .answer import KubeError, document, member
from .api import Api, Object
from .pod_log import end_of, says_no_log

T = TypeVar("T")
AT_ONCE = 8
"""Requests that the driver has under way at the same time."""


@dataclass(frozen=True)
class Get:
    """A request that changes nothing.

    :param path: from the root of the server, each part of it quoted (`path` makes one).
    :param query: parameters; without a repeated one.
    :param text: whether the answer is text, such as a log, and not JSON.
    :param accept: form of the answer, of those that the server has beside plain JSON, such as its own tables; empty for
        plain JSON. Only the console asks for others.
    """

    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    text: bool = False
    accept: str = ""


@dataclass(frozen=True)
class Unread:
    """Stands for an answer that did not come.

    :param path: what was asked for.
    :param status: of HTTP; 0 where there was no answer, or where the answer was no JSON.
    :param reason: one sentence without a full stop.
    """

    path: str
    status: int
    reason: str

    @property
    def absent(self) -> bool:
        """Whether the server says that it has no such object, or no such kind."""
        return self.status == 404

    @property
    def no_log(self) -> bool:
        """Whether a container has no log yet."""
        return says_no_log(self.status, self.reason)

    @property
    def refused(self) -> bool:
        """Whether whoever asks may not read it."""
        return self.status in (401, 403)


Reader = Generator[Get | tuple[Get, ...], Any, T]


def path(version: str, plural: str, namespace: str = "", name: str = "", part: str = "") -> str:
    """Path of a collection or an object.

    :param version: such as `v1` or `batch/v1`.
    :param plural: the resource, such as `pods`.
    :param part: of the object, such as `log`.
    """
    scope = ["namespaces", namespace] if namespace else []
    parts = ["apis" if "/" in version else "api", *version.split("/"), *scope, plural, name, part]
    return "/" + "/".join(quote(each, safe="") for each in parts if each)


def listing(version: str, plural: str, namespace: str = "", *, labels: str = "", fields: str = "") -> Get:
    """All objects of a kind.

    :param namespace: empty for all of them.
    :param labels: label selector.
    :param fields: field selector.
    """
    selectors = {"labelSelector": labels, "fieldSelector": fields}
    return Get(path(version, plural, namespace), {name: value for name, value in selectors.items() if value})


def log(namespace: str, pod: str, *, tail: int, previous: bool = False, stamped: bool = False) -> Get:
    """The last lines of a pod's log; `Unread.no_log` where it has none yet.

    :param tail: number of lines.
    :param previous: of the container's run before its last restart.
    :param stamped: each line after its time and a space.
    """
    flags = {name: "true" for name, wanted in (("previous", previous), ("timestamps", stamped)) if wanted}
    return Get(path("v1", "pods", namespace, pod, "log"), {"tailLines": str(tail), **flags}, text=True)


def objects(answer: Any) -> list[Object] | Unread:
    """The objects of a list's answer, each with its kind; none where the server does not know the kind."""
    if isinstance(answer, Unread):
        return [] if answer.absent else answer
    kind = {"apiVersion": answer.get("apiVersion", ""), "kind": str(answer.get("kind", "")).removesuffix("List")}
    return [{**kind, **each} for each in member(answer, "items", f"list of {kind['kind']}")]


def read(api: Api, reader: Reader[T]) -> T:
    """The result of a reader, by an `Api`.

    :raises KubeError: no answer will ever come: the connection cannot be used.
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
    """One answer by an `Api`.

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
    """An answer that is needed.

    :raises KubeError: it did not come.
    """
    if isinstance(answer, Unread):
        raise KubeError(f"{answer.reason}.", status=answer.status)
    return answer


def unread(answers: Sequence[Any]) -> list[Unread]:
    """Those of the answers that did not come."""
    return [each for each in answers if isinstance(each, Unread)]
