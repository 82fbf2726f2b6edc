"""What the verdict looks at, read from the API server in one pass. Reads only; whatever cannot be read says why."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ..kube.api import Api, KubeError, Object
from ..training.names import NAME_LABEL, RESULT_KEY, result_name

T = TypeVar("T")


@dataclass(frozen=True)
class Unread:
    """Stands for a value that could not be read.

    :param reason: one sentence.
    :param settles: true if the same reading may work a moment later.
    """

    reason: str
    settles: bool = False


@dataclass(frozen=True)
class Observation:
    """The site as the API server shows it; each field is the value or why it could not be read.

    :param api: empty if the API server says that it is ready, else what it says.
    :param nodes: all Node objects.
    :param pods: Pod objects per system namespace.
    :param policies: NetworkPolicy objects in the training's namespace.
    :param run_pods: Pod objects of the training, ended ones included.
    :param result: the training's recorded result; empty if none was recorded.
    """

    api: str | Unread
    nodes: list[Object] | Unread
    pods: Mapping[str, list[Object]] | Unread
    policies: list[Object] | Unread
    run_pods: list[Object] | Unread
    result: Object | Unread


def observe(api: Api, *, namespaces: Sequence[str], run: str, run_namespace: str) -> Observation:
    """Read everything; when the API server does not answer, nothing else is tried.

    :param namespaces: those of the system pods.
    :param run: name of the training; empty if the site has none, then nothing of it is read.
    """
    ready = _attempt(lambda: _readyz(api))
    if isinstance(ready, Unread):
        return nothing_read(ready)
    training = bool(run)
    return Observation(
        api=ready,
        nodes=_attempt(lambda: api.list("v1", "Node")),
        pods=_attempt(lambda: {space: api.list("v1", "Pod", space) for space in namespaces}),
        policies=_attempt(lambda: api.list("networking.k8s.io/v1", "NetworkPolicy", run_namespace) if training else []),
        run_pods=_attempt(
            lambda: api.list("v1", "Pod", run_namespace, labels=f"{NAME_LABEL}={run}") if training else []
        ),
        result=_attempt(lambda: _result(api, run, run_namespace) if training else {}),
    )


def nothing_read(unread: Unread) -> Observation:
    """The observation when the API server cannot be asked; only its first field says why."""
    rest = Unread("not read: the API server cannot be asked", unread.settles)
    return Observation(unread, rest, rest, rest, rest, rest)


def _attempt(read: Callable[[], T]) -> T | Unread:
    try:
        return read()
    except KubeError as error:
        return Unread(error.message.rstrip("."), error.transient)


def _readyz(api: Api) -> str:
    try:
        api.call("GET", "/readyz", what="/readyz")
    except KubeError as error:
        if error.status < 500:
            raise
        return error.message
    return ""


def _result(api: Api, run: str, namespace: str) -> Object:
    """The JSON that the training's role recorded when the run ended.

    :raises KubeError: the record is there and is not JSON.
    """
    name = result_name(run)
    found = api.get("v1", "ConfigMap", name, namespace)
    if found is None:
        return {}
    try:
        result: Any = json.loads(found["data"][RESULT_KEY])
    except (KeyError, TypeError, ValueError) as error:
        raise KubeError(f"ConfigMap {namespace}/{name} holds no result.", status=422) from error
    return result if isinstance(result, dict) else {}
