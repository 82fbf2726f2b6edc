"""What the verdict looks at, read from the API server in one pass. Reads only; whatever cannot be read says why."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ..kube.api import Api, KubeError, Object
from ..trainings.logs import Event, events, last
from ..trainings.names import NAME_LABEL, RESULT_KEY, result_name
from ..trainings.places import decider, newest, started
from ..trainings.state import attempt_of, ended, live_object

T = TypeVar("T")

TAIL = 200
"""Lines of the log in which the last step is looked for; TensorFlow's own lines lie between ours."""


@dataclass(frozen=True)
class Unread:
    """Stands for a value that could not be read.

    :param reason: one sentence.
    :param settles: true if the same reading may work a moment later.
    """

    reason: str
    settles: bool = False


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A training that the site runs, as far as the verdict has to know it.

    :param topology: which roles it has.
    :param description_hash: of what the site says of it; empty where nobody says.
    :param train_steps: how many it is to do; None for a program that is not told.
    :param accuracy_bound: held-out accuracy that it has to reach; None for a program that knows no bound.
    :param start_timeout: seconds within which all its pods run.
    :param stall_timeout: seconds within which it makes a step.
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
    """What the cluster has of one training; each field is the value or why it could not be read.

    :param result: what is on record; empty if nothing is.
    :param live: the JobSet or Job that runs it or has run it.
    :param pods: ended ones included.
    :param said: last events of the pod that decides; read only while the run goes on.
    :param policies: NetworkPolicy objects in its namespace.
    """

    result: Object | Unread
    live: Object | Unread | None
    pods: list[Object] | Unread
    said: list[Event] | Unread
    policies: list[Object] | Unread

    @property
    def record(self) -> Object:
        """What is on record of the attempt that is there; empty if nothing is, or if it could not be read."""
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
        """The last step that a run has reported that goes on."""
        return None if isinstance(self.said, Unread) else last(self.said, "step").get("step")


@dataclass(frozen=True)
class Observation:
    """The site as the API server shows it; each field is the value or why it could not be read.

    :param api: empty if the API server says that it is ready, else what it says.
    :param nodes: all Node objects.
    :param pods: Pod objects per system namespace.
    :param runs: what there is of each training, in their order.
    """

    api: str | Unread
    nodes: list[Object] | Unread
    pods: Mapping[str, list[Object]] | Unread
    runs: Sequence[RunSeen]


def observe(api: Api, *, namespaces: Sequence[str], trainings: Sequence[Wanted]) -> Observation:
    """Read everything; when the API server does not answer, nothing else is tried.

    :param namespaces: those of the system pods.
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
    """The observation when the API server cannot be asked; only its first field says why."""
    rest = Unread("not read: the API server cannot be asked", unread.settles)
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
    """The last events of the pod that decides a run that goes on."""
    if isinstance(live, Unread) or live is None or ended(live) or isinstance(pods, Unread):
        return []
    pod = newest(pods).get(decider(live))
    if pod is None or not started(pod):
        return []
    return events(api.log(pod["metadata"]["namespace"], pod["metadata"]["name"], tail=TAIL))


def attempt(read: Callable[[], T]) -> T | Unread:
    """What a reading gives, or why it gives nothing."""
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
