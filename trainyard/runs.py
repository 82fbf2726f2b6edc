"""Which runs a cluster has, and how far each is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ansible.module_utils.trainyard.kube.api import Api, Object
from ansible.module_utils.trainyard.training.logs import Event, events, last
from ansible.module_utils.trainyard.training.names import (
    ATTEMPT_ANNOTATION,
    HASH_ANNOTATION,
    JOBSET_API,
    NAME_LABEL,
    RESULT_KEY,
    ROLE_LABEL,
    WORKLOAD_ANNOTATION,
    result_name,
)
from ansible.module_utils.trainyard.training.watch import index_of, pod_state, role_of

GPU = "nvidia.com/gpu"
ENDED = ("passed", "no_bound", "failed", "stopped", "ended")
STUCK = ("Unschedulable", "ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "CreateContainerConfigError")
"""Reasons of a waiting pod that do not pass by themselves in a moment."""
TAIL = 200
"""Lines of the log in which the last step is looked for; TensorFlow's own lines lie between ours."""


@dataclass(frozen=True)
class Row:
    """One run.

    :param state: `waiting` (a pod has no place or no image), `starting`, `running`, `restarting`, or how it ended:
        `passed`, `no_bound`, `failed`, `stopped`; `ended` where no record says more.
    :param why: what a run in `waiting` waits for, or why one failed; else empty.
    :param step: last step that was reported; None before the first, and for a program that reports none.
    :param steps: how many it is to do; 0 for one without end.
    :param accuracy: on held-out data, 0 to 1.
    :param age: seconds since the submission.
    :param pods: number of pods that run now.
    :param wanted: number of pods that the run has while it goes on.
    :param gpus: that its pods hold now.
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


def runs(api: Api, now: datetime) -> list[Row]:
    """All runs of the cluster, those that go on first, then the youngest.

    :raises KubeError: the cluster does not answer, or refuses.
    """
    sets = {_key(each): each for each in api.list(JOBSET_API, "JobSet") if HASH_ANNOTATION in _annotations(each)}
    records = {}
    for each in api.list("v1", "ConfigMap", labels="app.kubernetes.io/managed-by=trainyard"):
        if RESULT_KEY in (each.get("data") or {}):
            space, name = _key(each)
            records[space, name.removesuffix(result_name(""))] = json.loads(each["data"][RESULT_KEY])
    pods: dict[tuple[str, str], list[Object]] = {}
    for pod in api.list("v1", "Pod", labels=ROLE_LABEL):
        pods.setdefault((pod["metadata"]["namespace"], pod["metadata"]["labels"].get(NAME_LABEL, "")), []).append(pod)
    found = []
    for key in {*sets, *records}:
        jobset, mine = sets.get(key), newest(pods.get(key, ()))
        said = _said(api, mine) if jobset and not _terminal(jobset) else []
        found.append(row(key, jobset, records.get(key, {}), list(mine.values()), said, now))
    return sorted(found, key=lambda each: (each.state in ENDED, each.age or 0, each.namespace, each.run))


def row(
    key: tuple[str, str],
    jobset: Object | None,
    record: Mapping[str, Any],
    pods: Sequence[Object],
    said: Sequence[Event],
    now: datetime,
) -> Row:
    """One run from what was read.

    :param key: namespace and name.
    :param jobset: None where only a record is left.
    :param record: of the attempt that ended last; empty for none.
    :param pods: the newest of each place.
    :param said: by the chief, last lines; empty for a run that has ended.
    """
    namespace, name = key
    step = last(said, "step")
    attempt = _annotations(jobset).get(ATTEMPT_ANNOTATION, "") if jobset else str(record.get("attempt", ""))
    # The record of an earlier attempt says nothing of this one.
    known = record if not jobset or record.get("attempt", attempt) == attempt else {}
    state, why = _state(jobset, known, pods, step)
    live = [pod for pod in pods if pod_state(pod)[0] == "running"]
    return Row(
        run=name,
        namespace=namespace,
        workload=str(
            (_annotations(jobset) if jobset else {}).get(WORKLOAD_ANNOTATION, "") or known.get("workload", "")
        ),
        state=state,
        why=why,
        step=step.get("step", known.get("steps")),
        steps=step.get("steps_total", known.get("train_steps")),
        accuracy={**known, **last(said, "evaluate")}.get("accuracy"),
        age=_age(jobset, attempt, now),
        pods=len(live),
        wanted=_wanted(jobset) if jobset and state not in ENDED else 0,
        gpus=sum(_gpus(pod) for pod in live),
    )


def newest(pods: Sequence[Object]) -> dict[str, Object]:
    """The last pod of each place, such as `worker-1`, in the order of the places."""
    found: dict[str, Object] = {}
    for pod in sorted(pods, key=lambda each: (each["metadata"]["creationTimestamp"], each["metadata"]["uid"])):
        found[f"{role_of(pod)}-{index_of(pod)}"] = pod
    return {place: found[place] for place in sorted(found, key=_natural)}


def _natural(place: str) -> list[int | str]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", place)]


def _said(api: Api, pods: Mapping[str, Object]) -> list[Event]:
    chief = pods.get("chief-0")
    if chief is None or pod_state(chief)[0] == "waiting":
        return []
    return events(api.log(chief["metadata"]["namespace"], chief["metadata"]["name"], tail=TAIL))


def _state(
    jobset: Object | None, record: Mapping[str, Any], pods: Sequence[Object], step: Mapping[str, Any]
) -> tuple[str, str]:
    result = str(record.get("result", ""))
    if jobset is None or _terminal(jobset):
        failed = jobset is not None and _terminal(jobset) == "Failed"
        return (result or ("failed" if failed else "ended")), str(record.get("why", ""))
    waiting = [(pod, why) for pod in pods for state, why in [pod_state(pod)] if state == "waiting"]
    if any(why.partition(":")[0] in STUCK for _, why in waiting):
        pod, why = next(each for each in waiting if each[1].partition(":")[0] in STUCK)
        return "waiting", f"{role_of(pod)}-{index_of(pod)} {why}"
    if not step:
        return "starting", ""
    return ("restarting", "") if not any(pod_state(pod)[0] == "running" for pod in pods) else ("running", "")


def _terminal(jobset: Object) -> str:
    return str((jobset.get("status") or {}).get("terminalState") or "")


def _wanted(jobset: Object) -> int:
    jobs = jobset["spec"]["replicatedJobs"]
    return sum(int(job.get("replicas", 1)) * int(job["template"]["spec"].get("parallelism", 1)) for job in jobs)


def _gpus(pod: Object) -> int:
    limits = [(each.get("resources") or {}).get("limits") or {} for each in pod["spec"]["containers"]]
    return sum(int(each.get(GPU, 0)) for each in limits)


def _age(jobset: Object | None, attempt: str, now: datetime) -> float | None:
    """Seconds since the submission, by the object's time, or by the name of the attempt."""
    try:
        if jobset:
            begin = datetime.fromisoformat(jobset["metadata"]["creationTimestamp"])
        else:
            begin = datetime.strptime(attempt.partition("-")[0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except (KeyError, ValueError):
        return None
    return max(0.0, (now - begin).total_seconds())


def _key(obj: Object) -> tuple[str, str]:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


def _annotations(obj: Object) -> Mapping[str, str]:
    return obj["metadata"].get("annotations") or {}
