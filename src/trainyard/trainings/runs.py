"""Which runs a cluster has, how far each is, and what those wait for that have no place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from ..core.untrusted import number
from ..kube.api import Api, KubeError, Object
from ..kube.placement import unplaced
from ..kube.reads import Get, Reader, Unread, listing, log, must, objects, read
from . import found, record
from .gpus import held
from .logs import DEVICE_FIELDS, SUCCESSES, Event, devices, events, last
from .names import NAME_LABEL, ROLE_LABEL
from .places import STUCK, decider, newest, place_of, pod_state, started
from .queue import HeldBy, Key, held_by
from .state import attempt_of, created, ended, wanted_pods, workload_of

ENDED = (*SUCCESSES, record.FAILED, record.STOPPED, "ended")
TAIL = 200
"""Lines of the log in which the last step is looked for; TensorFlow's own lines lie between ours."""


@dataclass(frozen=True)
class Row:
    """One run.

    :param state: `waiting` (a pod has no place or no image), `starting`, `running`, `restarting`, `stopping`
        (its pods still save), or how it ended: `passed`, `no_bound`, `failed`, `stopped`; `ended` where no record says
        more.
    :param why: what a run in `waiting` waits for, why one failed, or why nobody knows how it ended; else empty.
    :param step: last step that was reported; None before the first, and for a program that reports none.
    :param steps: how many it is to do; 0 for one without end.
    :param accuracy: on held-out data, 0 to 1.
    :param age: seconds since the submission.
    :param pods: number of pods that run now.
    :param wanted: number of pods that the run has while it goes on.
    :param gpus: that its pods hold now.
    :param compute: `gpu` or `cpu`, by the run's own account; None where it has not said it.
    :param gpu_allocated: GPUs that it says its pods were given; None as above.
    :param loss: at the last step that was reported; None where it says none, and so on for the next two.
    :param steps_per_second: over the steps since the report before.
    :param seconds_left: steps to go at that speed; None for a run without end, or one that makes no steps now.
    :param held_by: who holds what a waiting run waits for.
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
    """A reader of all runs, those that go on first, then the youngest.

    :param namespaces: where to look for runs and their pods; none stands for all.
    :raises KubeError: runs or their pods cannot be read.
    """
    there = yield from found.reading(namespaces)
    answers = yield tuple(listing("v1", "pods", space, labels=ROLE_LABEL) for space in namespaces or ("",))
    mine = {key: newest(pods) for key, pods in by_run(pod for each in answers for pod in must(objects(each))).items()}
    said = yield from saying(there, mine)
    rows = {key: row(each, list(mine.get(key, {}).values()), said.get(key, []), now) for key, each in there.items()}
    waiting = [key for key, each in rows.items() if each.state == "waiting"]
    if any(unplaced(pod) is not None for key in waiting for pod in mine[key].values()):
        nodes, pods = yield listing("v1", "nodes"), listing("v1", "pods")
        # Who may see his own namespace alone sees the row all the same, without who holds what.
        known = [each if not isinstance(each, Unread) else [] for each in map(objects, (nodes, pods))]
        for key in waiting:
            rows[key] = replace(rows[key], held_by=held_by(mine[key].values(), known[0], known[1], rows))
    return sorted(rows.values(), key=lambda each: (each.state in ENDED, each.age or 0, each.namespace, each.run))


def runs(api: Api, now: datetime) -> list[Row]:
    """The same of the cluster of an `Api`.

    :raises KubeError: the cluster does not answer, or refuses.
    """
    return read(api, reading(now))


def by_run(pods: Any) -> dict[Key, list[Object]]:
    """Pods by the run that they are of."""
    mine: dict[Key, list[Object]] = {}
    for pod in pods:
        labels = pod["metadata"].get("labels") or {}
        mine.setdefault((pod["metadata"]["namespace"], labels.get(NAME_LABEL, "")), []).append(pod)
    return mine


def saying(
    there: Mapping[Key, found.Found], pods: Mapping[Key, Mapping[str, Object]]
) -> Reader[dict[Key, list[Event]]]:
    """A reader of what the runs that go on say of themselves: last lines of the pods that decide them.

    :param pods: of each run, the newest of each place.
    :raises KubeError: whoever asks may not read logs.
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
        # Where its node does not answer, the other runs are to be seen all the same.
        said[key] = [] if isinstance(answer, Unread) else events(answer)
    return said


def row(run: found.Found, pods: Sequence[Object], said: Sequence[Event], now: datetime) -> Row:
    """One run from what was read.

    :param pods: the newest of each place.
    :param said: by the process that decides, last lines; empty for a run that has ended.
    """
    known = record.read(run.kept)
    if run.live and known.get("attempt", attempt_of(run.live)) != attempt_of(run.live):
        known = {}  # It is about the attempt before this one.
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
"""Seconds, some 300 years: a speed of which this comes says nothing."""


def seconds_left(step: Mapping[str, Any]) -> float | None:
    """Seconds that a run needs for its steps to go, by the speed of its last report; None where that is not known.

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
        # Nobody was there to record how it ended.
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
    """Seconds since a time as the cluster and the records write it."""
    try:
        begin = datetime.fromisoformat(submitted)
    except ValueError:
        return None
    return max(0.0, (now - begin.replace(tzinfo=begin.tzinfo or UTC)).total_seconds())
