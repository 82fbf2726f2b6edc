"""All details of one run that the cluster has: its pods, attempts, events, flags and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ..core.untrusted import whole
from ..kube.api import Object
from ..kube.placement import unplaced
from ..kube.reads import Reader, Unread, listing, log, must, objects
from . import record, run_index
from .gpu_requests import held
from .log_events import Event, events
from .names import NAME_LABEL, RUNS
from .pod_places import age_order, decider, newest, place_of, pod_state, role_of, started
from .queue import Key, held_by
from .run_state import attempt_of, created, files, knobs, restarts
from .runs import Row, by_run, row, saying

SAID = 2000
"""Last log lines of the deciding pod, from which its curve is drawn."""
SET_RESTART = "jobset.sigs.k8s.io/restart-attempt"
"""Label of the pods of a JobSet: how often the set had been restarted when they were created."""


@dataclass(frozen=True)
class PodRow:
    """A pod of a run, including replaced ones.

    :param place: role and index, such as `worker-1`.
    :param node: its node; empty before it is scheduled.
    :param state: `waiting`, `running` or `ended`.
    :param why: what it waits for, or the reason of its end, such as `OOMKilled`; else empty.
    :param exit_code: exit code of its last end; None before that.
    :param restarts: number of restarts of its container.
    :param restart: number of restarts of the whole run when the pod was created.
    :param newest: whether it is the newest pod of its place.
    :param created: time in the cluster's format, as for the next two; empty if it has not happened.
    :param gpus: number of GPUs that it holds.
    :param has_log: whether its log can be requested.
    """

    name: str
    place: str
    role: str
    node: str
    state: str
    why: str
    exit_code: int | None
    restarts: int
    restart: int
    newest: bool
    created: str
    started: str
    finished: str
    gpus: int
    has_log: bool


@dataclass(frozen=True)
class Attempt:
    """A submission of a run. The cluster does not keep those before the last; their curves are on the run's volume.

    :param name: name of the attempt and of its folder on the volume, such as `20261122T120000Z-1f2e`.
    :param goes_on: whether it has a live object that has not ended.
    :param result: as in a record: `running`, `passed`, `no_bound`, `failed`, `stopped`, `unknown`.
    :param restarts: number of restarts of the whole run in this attempt.
    """

    name: str
    goes_on: bool
    result: str
    submitted: str
    ended: str
    restarts: int


@dataclass(frozen=True)
class Detail:
    """One run.

    :param deciding: place of the deciding pod, such as `chief-0`.
    :param pods: its pods, sorted by place, the newest of a place first.
    :param attempts: known attempts, the newest first.
    :param said: last events of the deciding pod; empty if there are none or they cannot be read.
    :param unread: reasons why data could not be read, as sentences.
    :param knobs: flags of the run, such as `learning_rate`; from its record if its object is gone.
    :param record: its record; empty if there is none.
    :param files: `claim` and `folder` of its files; empty if it has none.
    :param service: whether it runs until it is stopped, as a notebook does.
    """

    row: Row
    deciding: str
    pods: Sequence[PodRow]
    attempts: Sequence[Attempt]
    said: Sequence[Event]
    unread: Sequence[str]
    knobs: Mapping[str, str]
    record: Mapping[str, Any]
    files: Mapping[str, str]
    service: bool


def reading(namespace: str, name: str, now: datetime) -> Reader[Detail]:
    """Read one run.

    :raises TrainyardError: there is no such run; the error names those of its namespace.
    :raises KubeError: the run cannot be read.
    """
    there = yield from run_index.reading([namespace])
    one = run_index.choose(there, name, namespace)
    pods = must(objects((yield listing("v1", "pods", namespace, labels=f"{NAME_LABEL}={name}"))))
    mine = newest(pods)
    said, unread = yield from _said(one, mine)
    made = row(one, list(mine.values()), said, now)
    if made.state == "waiting" and any(unplaced(pod) is not None for pod in mine.values()):
        made = yield from _with_holders(made, list(mine.values()), now)
    return detail(one, pods, said, made, unread)


def _said(one: run_index.Found, mine: Mapping[str, Object]) -> Reader[tuple[list[Event], list[str]]]:
    pod = mine.get(decider(one.live))
    if pod is None or not started(pod):
        return [], []
    answer = yield log(one.namespace, pod["metadata"]["name"], tail=SAID)
    if not isinstance(answer, Unread):
        return events(answer), []
    return [], [] if answer.no_log or answer.absent else [answer.reason]


def _with_holders(made: Row, mine: Sequence[Object], now: datetime) -> Reader[Row]:
    """Add the holders of what the run waits for, if they can be read."""
    answers = yield listing("v1", "nodes"), listing("v1", "pods")
    nodes, pods = map(objects, answers)
    if isinstance(nodes, Unread) or isinstance(pods, Unread):
        return made
    bare = held_by(mine, nodes, pods, {})
    spaces = sorted({each.namespace for each in bare if each.run})
    others: dict[Key, run_index.Found] = {}
    if spaces:
        others = yield from run_index.reading(spaces)
    wanted = {(each.namespace, each.run) for each in bare}
    others = {key: each for key, each in others.items() if key in wanted}
    theirs = {key: newest(each) for key, each in by_run(pods).items() if key in others}
    said = yield from saying(others, theirs)
    rows = {key: row(each, list(theirs.get(key, {}).values()), said.get(key, []), now) for key, each in others.items()}
    return replace(made, held_by=held_by(mine, nodes, pods, rows))


def detail(
    one: run_index.Found, pods: Sequence[Object], said: Sequence[Event], made: Row, unread: Sequence[str] = ()
) -> Detail:
    """Return one run from the objects read.

    :param pods: all its pods, including replaced ones.
    """
    known = record.read(one.kept)
    now = {pod["metadata"]["name"] for pod in newest(pods).values()}
    ordered = sorted(pods, key=age_order, reverse=True)
    rows = [pod_row(pod, newest=pod["metadata"]["name"] in now) for pod in ordered]
    places = list(newest(pods))
    return Detail(
        row=made,
        deciding=decider(one.live) or ("chief-0" if "chief-0" in places else next(iter(places), "")),
        pods=sorted(rows, key=lambda each: places.index(each.place)),
        attempts=attempts(one, known),
        said=said,
        unread=unread,
        knobs=knobs(one.live) or {name: str(known[name]) for name in _KNOWN if known.get(name) is not None},
        record=known,
        files=files(one.live) or {key: str(it) for key, it in (known.get("files") or {}).items() if key in _FILES},
        service=one.live is not None and one.live["kind"] not in RUNS,
    )


_KNOWN = ("train_steps", "accuracy_bound")
_FILES = ("claim", "folder")


def pod_row(pod: Object, *, newest: bool = True) -> PodRow:
    """Return one pod from the object read."""
    meta, status = pod["metadata"], pod.get("status") or {}
    state, why = pod_state(pod)
    container: Mapping[str, Any] = next(iter(status.get("containerStatuses") or []), {})
    now = container.get("state") or {}
    over = now.get("terminated") or (container.get("lastState") or {}).get("terminated") or {}
    if state == "ended":
        reason = str(over.get("reason", ""))
        why = str(status.get("reason") or ("" if reason in ("Completed", "Error") else reason))
    return PodRow(
        name=meta["name"],
        place=place_of(pod),
        role=role_of(pod),
        node=str(pod["spec"].get("nodeName") or ""),
        state=state,
        why=why,
        exit_code=over.get("exitCode"),
        restarts=whole(container.get("restartCount")) or 0,
        restart=whole((meta.get("labels") or {}).get(SET_RESTART)) or 0,
        newest=newest,
        created=str(meta.get("creationTimestamp") or ""),
        started=str((now.get("running") or over).get("startedAt") or ""),
        finished=str((now.get("terminated") or {}).get("finishedAt") or ""),
        gpus=held(pod),
        has_log=started(pod),
    )


def attempts(one: run_index.Found, known: Mapping[str, Any]) -> list[Attempt]:
    """Return the attempts that the cluster knows: those of the live object and of the record."""
    made = []
    current = attempt_of(one.live)
    if one.live:
        mine = known if known.get("attempt") == current else {}
        result = record.RUNNING if one.goes_on else str(mine.get("result", record.UNKNOWN))
        ended_at = "" if one.goes_on else str(mine.get("ended_at", ""))
        made.append(Attempt(current, one.goes_on, result, created(one.live), ended_at, restarts(one.live)))
    if known.get("attempt") and known["attempt"] != current:
        submitted, ended_at = (str(known.get(name, "")) for name in ("submitted_at", "ended_at"))
        result = str(known.get("result", record.UNKNOWN))
        made.append(
            Attempt(str(known["attempt"]), False, result, submitted, ended_at, whole(known.get("restarts")) or 0)
        )
    return made
