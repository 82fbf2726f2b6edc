"""The state, the flags and the files of a run, as its live object reports them.

The functions accept all kinds of objects that run a training.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from ..core.untrusted import number, whole
from ..kube.api import Api, Object
from .names import API_VERSIONS, ATTEMPT_ANNOTATION, CONTAINER, HASH_ANNOTATION, PROGRAM_ANNOTATION, WORKLOAD_ANNOTATION
from .pod_places import decider
from .roles import GRACE_SECONDS

ATTEMPT = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{4}")
UNKNOWN_ATTEMPT = "unknown"

MOST_GRACE_SECONDS = 3_600.0
"""Limit for waiting for pods. The grace period of a run is set by a user, who may write 10^9 seconds."""

_JOB_CONDITIONS = {"Completed": "Complete", "Failed": "Failed"}


def live_object(api: Api, namespace: str, name: str, kinds: Collection[str] = tuple(API_VERSIONS)) -> Object | None:
    """Return the object of any of the kinds that runs the run of this name; None if there is none."""
    for kind in kinds:
        if found := api.get(API_VERSIONS[kind], kind, name, namespace):
            return {"apiVersion": API_VERSIONS[kind], "kind": kind, **found}
    return None


def condition(live: Mapping[str, Any] | None, kind: str) -> Object:
    """Return a true condition (Completed, Failed); empty if it does not hold."""
    wanted = _JOB_CONDITIONS[kind] if (live or {}).get("kind") == "Job" else kind
    conditions = ((live or {}).get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == wanted and each["status"] == "True"), {})


def ended(live: Mapping[str, Any] | None) -> str | None:
    """Return `Completed`, `Failed`, or None for an object that has not ended or does not exist."""
    state = ((live or {}).get("status") or {}).get("terminalState")
    return str(state) if state else next((kind for kind in _JOB_CONDITIONS if condition(live, kind)), None)


def restarts(live: Mapping[str, Any] | None) -> int:
    """Return the number of restarts of the whole set, or of the pod of a Job, counted or not."""
    status = (live or {}).get("status") or {}
    return whole(status.get("restarts" if (live or {}).get("kind") == "JobSet" else "failed")) or 0


def counted_restarts(live: Mapping[str, Any] | None) -> int:
    """Return the number of restarts that `max_restarts` limits; preemptions and lost nodes do not count."""
    status = (live or {}).get("status") or {}
    return whole(status.get("restartsCountTowardsMax" if (live or {}).get("kind") == "JobSet" else "failed")) or 0


def wanted_pods(live: Object) -> int:
    """Return the number of pods that an object has while it runs."""
    if live["kind"] == "Job":
        return _count(live["spec"].get("parallelism"))
    if live["kind"] == "Deployment":
        return _count(live["spec"].get("replicas"))
    jobs = live["spec"]["replicatedJobs"]
    return sum(_count(job.get("replicas")) * _count(job["template"]["spec"].get("parallelism")) for job in jobs)


def _count(value: Any) -> int:
    """Return a number of pods; Kubernetes' default of 1 if it is not set."""
    return 1 if value is None else whole(value, 0) or 0


def created(live: Mapping[str, Any] | None) -> str:
    """Return the submission time in the cluster's format; empty if unknown."""
    return str((live or {}).get("metadata", {}).get("creationTimestamp") or "")


def seconds(live: Mapping[str, Any] | None) -> float | None:
    """Return the seconds from submission to completion by the cluster's clock, in whole seconds."""
    completed = condition(live, "Completed").get("lastTransitionTime")
    if not (completed and created(live)):
        return None
    return (datetime.fromisoformat(completed) - datetime.fromisoformat(created(live))).total_seconds()


def grace(live: Mapping[str, Any] | None) -> float:
    """Return the longest grace period of all roles: seconds from SIGTERM to SIGKILL, at most `MOST_GRACE_SECONDS`."""
    spec = (live or {}).get("spec") or {}
    jobs = [each["template"] for each in spec.get("replicatedJobs") or ()] or [{"spec": spec}]
    pods = [(((job.get("spec") or {}).get("template") or {}).get("spec") or {}) for job in jobs]
    asked = [pod.get("terminationGracePeriodSeconds", GRACE_SECONDS) for pod in pods]
    return min(MOST_GRACE_SECONDS, max(number(each, 0) or 0.0 for each in asked))


def hash_of(obj: Mapping[str, Any] | None) -> str | None:
    """Return the hash of the run that an object was created for."""
    return _annotation(obj, HASH_ANNOTATION)


def attempt_of(obj: Mapping[str, Any] | None) -> str:
    """Return the attempt of an object; empty if it has none, `UNKNOWN_ATTEMPT` if its form is not ours."""
    return checked_attempt(_annotation(obj, ATTEMPT_ANNOTATION) or "")


def checked_attempt(value: Any) -> str:
    """Return an attempt in the form of `submit.new_attempt`, or empty; anything else becomes `UNKNOWN_ATTEMPT`.

    Users of a namespace can write the value, and it becomes the name of a folder on the controller.
    """
    if value == "" or (isinstance(value, str) and ATTEMPT.fullmatch(value)):
        return str(value)
    return UNKNOWN_ATTEMPT


def workload_of(obj: Mapping[str, Any] | None) -> str:
    """Return the catalogue entry of an object; empty if unknown."""
    return _annotation(obj, WORKLOAD_ANNOTATION) or ""


def program_of(obj: Mapping[str, Any] | None) -> str:
    """Return the hash of an object's code folder and command; empty if unknown."""
    return _annotation(obj, PROGRAM_ANNOTATION) or ""


def _annotation(obj: Mapping[str, Any] | None, name: str) -> str | None:
    return ((obj or {}).get("metadata", {}).get("annotations") or {}).get(name)


def knobs(live: Object | None) -> dict[str, str]:
    """Return the flags of the deciding pod, except those of its files and its attempt."""
    container = _container(live)
    given = [str(each) for each in container.get("args") or []]
    flags = dict(each[2:].partition("=")[::2] for each in given if each.startswith("--") and "=" in each)
    return {name: value for name, value in flags.items() if name not in ("data_dir", "log_dir", "attempt", "resume")}


def files(live: Object | None) -> dict[str, str]:
    """Return the claim with a run's files and its folder there; empty if it has none."""
    claims = {
        volume["name"]: volume["persistentVolumeClaim"]["claimName"]
        for volume in _pod(live).get("volumes") or []
        if "persistentVolumeClaim" in volume
    }
    if "logs" not in claims:
        return {}
    flags = [str(each) for each in _container(live).get("args") or []]
    folder = next((each.partition("=")[2] for each in flags if each.startswith("--log_dir=")), "/logs")
    return {"claim": str(claims["logs"]), "folder": folder}


def _container(live: Object | None) -> Mapping[str, Any]:
    containers = _pod(live).get("containers") or []
    return next((each for each in containers if each.get("name") == CONTAINER), {})


def _pod(live: Object | None) -> Mapping[str, Any]:
    """Return the spec of the pods of the deciding role."""
    spec = (live or {}).get("spec") or {}
    role = decider(live).rpartition("-")[0]
    jobs = {each["name"]: each["template"] for each in spec.get("replicatedJobs") or ()}
    if jobs:
        spec = (jobs.get(role) or {}).get("spec") or {}
    return ((spec.get("template") or {}).get("spec")) or {}
