"""Which runs a cluster has, and how far each is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ansible.module_utils.trainyard.kube.api import Api, KubeError, Object
from ansible.module_utils.trainyard.training import found, record
from ansible.module_utils.trainyard.training.gpus import held
from ansible.module_utils.trainyard.training.logs import DEVICE_FIELDS, SUCCESSES, Event, devices, events, last
from ansible.module_utils.trainyard.training.names import NAME_LABEL, ROLE_LABEL
from ansible.module_utils.trainyard.training.places import STUCK, decider, newest, place_of, pod_state
from ansible.module_utils.trainyard.training.state import attempt_of, created, ended, workload_of

ENDED = (*SUCCESSES, record.FAILED, record.STOPPED, "ended")
TAIL = 200
"""Lines of the log in which the last step is looked for; TensorFlow's own lines lie between ours."""


@dataclass(frozen=True)
class Row:
    """One run.

    :param state: `waiting` (a pod has no place or no image), `starting`, `running`, `restarting`, or how it ended:
        `passed`, `no_bound`, `failed`, `stopped`; `ended` where no record says more.
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


def runs(api: Api, now: datetime) -> list[Row]:
    """All runs of the cluster, those that go on first, then the youngest.

    :raises KubeError: the cluster does not answer, or refuses.
    """
    pods: dict[tuple[str, str], list[Object]] = {}
    for pod in api.list("v1", "Pod", labels=ROLE_LABEL):
        pods.setdefault((pod["metadata"]["namespace"], pod["metadata"]["labels"].get(NAME_LABEL, "")), []).append(pod)
    rows = []
    for key, each in found.runs(api).items():
        mine = newest(pods.get(key, ()))
        rows.append(row(each, list(mine.values()), _said(api, each, mine) if each.goes_on else [], now))
    return sorted(rows, key=lambda each: (each.state in ENDED, each.age or 0, each.namespace, each.run))


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
        wanted=_wanted(run.live) if run.live and state not in ENDED else 0,
        gpus=sum(map(held, live)),
        **{name: {**known, **devices(said)}.get(name) for name in DEVICE_FIELDS},
    )


def _said(api: Api, run: found.Found, pods: Mapping[str, Object]) -> list[Event]:
    pod = pods.get(decider(run.live))
    if pod is None or pod_state(pod)[0] == "waiting":
        return []
    try:
        return events(api.log(pod["metadata"]["namespace"], pod["metadata"]["name"], tail=TAIL))
    except KubeError as error:
        # Its node does not answer; the other runs are to be seen all the same.
        if error.transient or error.status == 500:
            return []
        raise


def _state(
    live: Object | None, known: Mapping[str, Any], pods: Sequence[Object], step: Mapping[str, Any]
) -> tuple[str, str]:
    result = str(known.get("result", ""))
    over = ended(live)
    if live is None or over:
        # Nobody was there to record how it ended.
        unseen = record.FAILED if over == "Failed" else "ended"
        return (unseen if result in ("", record.RUNNING, record.UNKNOWN) else result), str(known.get("why", ""))
    waiting = [(pod, why) for pod in pods for state, why in [pod_state(pod)] if state == "waiting"]
    for pod, why in waiting:
        if why.partition(":")[0] in STUCK:
            return "waiting", f"{place_of(pod)} {why}"
    if not any(pod_state(pod)[0] == "running" for pod in pods):
        return ("restarting" if step else "starting"), ""
    return ("running" if step or not waiting else "starting"), ""


def _wanted(live: Object) -> int:
    if live["kind"] == "Job":
        return int(live["spec"].get("parallelism", 1))
    if live["kind"] == "Deployment":
        return int(live["spec"].get("replicas", 1))
    jobs = live["spec"]["replicatedJobs"]
    return sum(int(job.get("replicas", 1)) * int(job["template"]["spec"].get("parallelism", 1)) for job in jobs)


def _age(submitted: str, now: datetime) -> float | None:
    """Seconds since a time as the cluster and the records write it."""
    try:
        begin = datetime.fromisoformat(submitted)
    except ValueError:
        return None
    return max(0.0, (now - begin.replace(tzinfo=begin.tzinfo or UTC)).total_seconds())
