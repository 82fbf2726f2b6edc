"""The runs of a cluster: their states, their progress, and what unschedulable ones wait for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from ..core.untrusted import number
from ..kube.api import Api, KubeError, Object
from ..kube.placement import unplaced
from ..kube.reads import Get, Reader, Unread, listing, log, must, objects, read
from . import record, run_index
from .gpu_requests import held
from .log_events import DEVICE_FIELDS, SUCCESSES, Event, devices, events, last
from .names import NAME_LABEL, ROLE_LABEL
from .pod_places import STUCK, decider, newest, place_of, pod_state, started
from .queue import HeldBy, Key, held_by
from .run_state import attempt_of, created, ended, wanted_pods, workload_of

ENDED = (*SUCCESSES, record.FAILED, record.STOPPED, "ended")
TAIL = 200
"""Last lines of a log that are searched for the last step; TensorFlow's own lines are mixed with ours."""


@dataclass(frozen=True)
class Row:
    """One run.

    :param state: `waiting` (a pod is unschedulable or lacks its image), `starting`, `running`, `restarting`, `stopping`
        (its pods still save), or its result: `passed`, `no_bound`, `failed`, `stopped`; `ended` without a record.
    :param why: what a `waiting` run waits for, why a run failed, or why its result is unknown; else empty.
    :param step: last reported step; None before the first, and for a program that reports none.
    :param steps: number of steps to do; 0 for a run without end.
    :param accuracy: on held-out data, 0 to 1.
    :param age: seconds since the submission.
    :param pods: number of running pods.
    :param wanted: number of pods that the run needs; 0 once it has ended.
    :param gpus: number of GPUs that its pods hold now.
    :param compute: `gpu` or `cpu`, as the run reports it; None if unreported.
    :param gpu_allocated: number of GPUs of its pods, as the run reports it; None if unreported.
    :param loss: at the last reported step; None if unreported, as for the next two.
    :param steps_per_second: speed since the previous report.
    :param seconds_left: time for the remaining steps at that speed; None for a run without end or not in `running`.
    :param held_by: holders of what a waiting run waits for.
    """

    run: str
    namespace: str
    workload: str
    state: str
    why: str
    step: int | None
    steps: int | None
    accuracy: float | None
    age: float | None
    pods: int
    wanted: int
    gpus: int
    compute: str | None = None
    gpu_allocated: int | None = None
    loss: float | None = None
    steps_per_second: float | None = None
    seconds_left: float | None = None
    held_by: Sequence[HeldBy] = ()


def reading(now: datetime, namespaces: Sequence[str] = ()) -> Reader[list[Row]]:
    """Read all runs: those that have not ended first, each group youngest first.

    :param namespaces: namespaces of the runs and their pods; empty for all.
    :raises KubeError: runs or their pods cannot be read.
    """
    there = yield from run_index.reading(namespaces)
    answers = yield tuple(listing("v1", "pods", space, labels=ROLE_LABEL) for space in namespaces or ("",))
    mine = {key: newest(pods) for key, pods in by_run(pod for each in answers for pod in must(objects(each))).items()}
    said = yield from saying(there, mine)
    rows = {key: row(each, list(mine.get(key, {}).values()), said.get(key, []), now) for key, each in there.items()}
    waiting = [key for key, each in rows.items() if each.state == "waiting"]
    if any(unplaced(pod) is not None for key in waiting for pod in mine[key].values()):
        nodes, pods = yield listing("v1", "nodes"), listing("v1", "pods")
        # A user who may read only one namespace still gets the rows, without the holders.
        known = [each if not isinstance(each, Unread) else [] for each in map(objects, (nodes, pods))]
        for key in waiting:
            rows[key] = replace(rows[key], held_by=held_by(mine[key].values(), known[0], known[1], rows))
    return sorted(rows.values(), key=lambda each: (each.state in ENDED, each.age or 0, each.namespace, each.run))


def runs(api: Api, now: datetime) -> list[Row]:
    """Return all runs of the cluster of an `Api`, in the order of `reading`.

    :raises KubeError: the cluster does not answer, or refuses.
    """
    return read(api, reading(now))


def by_run(pods: Any) -> dict[Key, list[Object]]:
    """Group pods by their runs."""
    mine: dict[Key, list[Object]] = {}
    for pod in pods:
        labels = pod["metadata"].get("labels") or {}
        mine.setdefault((pod["metadata"]["namespace"], labels.get(NAME_LABEL, "")), []).append(pod)
    return mine


def saying(
    there: Mapping[Key, run_index.Found], pods: Mapping[Key, Mapping[str, Object]]
) -> Reader[dict[Key, list[Event]]]:
    """Read the last events of the running runs from the logs of their deciding pods.

    :param pods: for each run, the newest pod of each place.
    :raises KubeError: the user may not read logs.
    """
    gets: dict[Key, Get] = {}
    for key, each in there.items():
        pod = pods.get(key, {}).get(decider(each.live))
        if each.goes_on and pod is not None and started(pod):
            gets[key] = log(pod["metadata"]["namespace"], pod["metadata"]["name"], tail=TAIL)
    answers = yield tuple(gets.values())
    said = {}
    for key, answer in zip(gets, answers, strict=True):
        if isinstance(answer, Unread) and answer.refused:
            raise KubeError(f"{answer.reason}.", status=answer.status)
        # If one node does not answer, the other runs are still shown.
        said[key] = [] if isinstance(answer, Unread) else events(answer)
    return said


def row(run: run_index.Found, pods: Sequence[Object], said: Sequence[Event], now: datetime) -> Row:
    """Return one run from the objects read.

    :param pods: the newest pod of each place.
    :param said: last events of the deciding process; empty for a run that has ended.
    """
    known = record.read(run.kept)
    if run.live and known.get("attempt", attempt_of(run.live)) != attempt_of(run.live):
        known = {}  # The record belongs to the previous attempt.
    step = last(said, "step")
    state, why = _state(run.live, known, pods, step)
    live = [pod for pod in pods if pod_state(pod)[0] == "running"]
    computes: dict[str, Any] = {name: {**known, **devices(said)}.get(name) for name in DEVICE_FIELDS}
    return Row(
        run=run.name,
        namespace=run.namespace,
        workload=workload_of(run.live) or workload_of(run.kept),
        state=state,
        why=why,
        step=step.get("step", known.get("steps")),
        steps=step.get("steps_total", known.get("train_steps")),
        accuracy={**known, **last(said, "evaluate")}.get("accuracy"),
        age=_age(created(run.live) or str(known.get("submitted_at", "")), now),
        pods=len(live),
        wanted=wanted_pods(run.live) if run.live and state not in ENDED else 0,
        gpus=sum(map(held, live)),
        **computes,
        loss=step.get("loss"),
        steps_per_second=step.get("steps_per_second", known.get("steps_per_second")),
        seconds_left=seconds_left(step) if state == "running" else None,
    )


_NEVER = 1e10
"""Seconds, about 300 years. An estimate beyond it is meaningless."""


def seconds_left(step: Mapping[str, Any]) -> float | None:
    """Return the seconds for the remaining steps at the last reported speed; None if unknown.

    :param step: the event `step`; empty before the first.
    """
    done, total, speed = (number(step.get(name)) for name in ("step", "steps_total", "steps_per_second"))
    if done is None or not total or not speed or speed <= 0:
        return None
    left = max(0, total - done) / speed
    return left if left < _NEVER else None


def _state(
    live: Object | None, known: Mapping[str, Any], pods: Sequence[Object], step: Mapping[str, Any]
) -> tuple[str, str]:
    result = str(known.get("result", ""))
    over = ended(live)
    runs_now = any(pod_state(pod)[0] == "running" for pod in pods)
    if runs_now and not over and (live is None or live["metadata"].get("deletionTimestamp")):
        return "stopping", ""
    if live is None or over:
        # No follower recorded how it ended.
        unseen = record.FAILED if over == "Failed" else "ended"
        return (unseen if result in ("", record.RUNNING, record.UNKNOWN) else result), str(known.get("why", ""))
    waiting = [(pod, why) for pod in pods for state, why in [pod_state(pod)] if state == "waiting"]
    for pod, why in waiting:
        if why.partition(":")[0] in STUCK:
            return "waiting", f"{place_of(pod)} {why}"
    if not runs_now:
        return ("restarting" if step else "starting"), ""
    return ("running" if step or not waiting else "starting"), ""


def _age(submitted: str, now: datetime) -> float | None:
    """Return the seconds since a time in the format of the cluster and the records; None if it is invalid."""
    try:
        begin = datetime.fromisoformat(submitted)
    except ValueError:
        return None
    return max(0.0, (now - begin.replace(tzinfo=begin.tzinfo or UTC)).total_seconds())
