"""Read what the verdict needs from the API server in one pass, or why it could not be read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ..kube.api import Api, KubeError, Object
from ..trainings.log_events import Event, events, last
from ..trainings.names import NAME_LABEL, RESULT_KEY, result_name
from ..trainings.pod_places import decider, newest, started
from ..trainings.run_state import attempt_of, ended, live_object

T = TypeVar("T")

TAIL = 200
"""Last lines of the log to search for a step; lines of TensorFlow itself are mixed in."""


@dataclass(frozen=True)
class Unread:
    """A value that could not be read.

    :param reason: one sentence.
    :param settles: true if a retry may succeed a moment later.
    """

    reason: str
    settles: bool = False


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The part of a training's description that the verdict needs.

    :param topology: name of its set of roles.
    :param description_hash: of its description in the site; empty if unknown.
    :param train_steps: steps that it must do; None for a program without such a setting.
    :param accuracy_bound: held-out accuracy that it must reach; None for a program without a bound.
    :param start_timeout: seconds within which all its pods must run.
    :param stall_timeout: seconds within which it must make a step.
    """

    name: str
    namespace: str
    topology: str
    description_hash: str = ""
    train_steps: int | None = None
    accuracy_bound: float | None = None
    start_timeout: float = 300.0
    stall_timeout: float = 120.0


@dataclass(frozen=True)
class RunSeen:
    """The objects of one training; each field is its value or the reason why it could not be read.

    :param result: its record; empty if there is none.
    :param live: the JobSet or Job that runs it or has run it.
    :param pods: including ended ones.
    :param said: last log events of the deciding pod; read only for a running training.
    :param policies: NetworkPolicy objects in its namespace.
    """

    result: Object | Unread
    live: Object | Unread | None
    pods: list[Object] | Unread
    said: list[Event] | Unread
    policies: list[Object] | Unread

    @property
    def record(self) -> Object:
        """The record of the existing attempt; empty if there is none or it could not be read."""
        if isinstance(self.result, Unread):
            return {}
        if not isinstance(self.live, Unread) and self.live is not None:
            attempt = attempt_of(self.live)
            return self.result if self.result.get("attempt", attempt) == attempt else {}
        return self.result

    @property
    def goes_on(self) -> bool:
        return not isinstance(self.live, Unread) and self.live is not None and ended(self.live) is None

    @property
    def step(self) -> int | None:
        """The last reported step of a running training."""
        return None if isinstance(self.said, Unread) else last(self.said, "step").get("step")


@dataclass(frozen=True)
class Observation:
    """The state of the site; each field is its value or the reason why it could not be read.

    :param api: empty if the API server reports ready, else its message.
    :param nodes: all Node objects.
    :param pods: system namespace -> Pod objects.
    :param runs: one for each training, in the same order.
    """

    api: str | Unread
    nodes: list[Object] | Unread
    pods: Mapping[str, list[Object]] | Unread
    runs: Sequence[RunSeen]


def observe(api: Api, *, namespaces: Sequence[str], trainings: Sequence[Wanted]) -> Observation:
    """Read the state of the site; if the API server does not answer, stop after the first request.

    :param namespaces: of the system pods.
    """
    ready = attempt(lambda: _readyz(api))
    if isinstance(ready, Unread):
        return nothing_read(ready, len(trainings))
    return Observation(
        api=ready,
        nodes=attempt(lambda: api.list("v1", "Node")),
        pods=attempt(lambda: {space: api.list("v1", "Pod", space) for space in namespaces}),
        runs=[_run(api, each) for each in trainings],
    )


def nothing_read(unread: Unread, trainings: int = 0) -> Observation:
    """Return an observation for an API server that does not answer; only its first field has the reason."""
    rest = Unread("not read: the API server does not answer", unread.settles)
    return Observation(unread, rest, rest, [RunSeen(rest, rest, rest, rest, rest)] * trainings)


def _run(api: Api, want: Wanted) -> RunSeen:
    live = attempt(lambda: live_object(api, want.namespace, want.name))
    pods = attempt(lambda: api.list("v1", "Pod", want.namespace, labels=f"{NAME_LABEL}={want.name}"))
    return RunSeen(
        result=attempt(lambda: _result(api, want.name, want.namespace)),
        live=live,
        pods=pods,
        said=attempt(lambda: _said(api, live, pods)),
        policies=attempt(lambda: api.list("networking.k8s.io/v1", "NetworkPolicy", want.namespace)),
    )


def _said(api: Api, live: Object | Unread | None, pods: list[Object] | Unread) -> list[Event]:
    """Read the last log events of the deciding pod of a running training."""
    if isinstance(live, Unread) or live is None or ended(live) or isinstance(pods, Unread):
        return []
    pod = newest(pods).get(decider(live))
    if pod is None or not started(pod):
        return []
    return events(api.log(pod["metadata"]["namespace"], pod["metadata"]["name"], tail=TAIL))


def attempt(read: Callable[[], T]) -> T | Unread:
    """Return the result of `read`, or the reason of its failure."""
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
    """Read the record of a run; empty if there is none.

    :raises KubeError: the record is not JSON.
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
