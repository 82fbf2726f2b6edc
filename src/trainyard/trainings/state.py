"""What the object that runs a training says of it, whether it is a JobSet or a Job."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from ..core.untrusted import number, whole
from ..kube.api import Api, Object
from .names import API_VERSIONS, ATTEMPT_ANNOTATION, HASH_ANNOTATION, PROGRAM_ANNOTATION, WORKLOAD_ANNOTATION
from .roles import GRACE_SECONDS

ATTEMPT = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{4}")
UNKNOWN_ATTEMPT = "unknown"

MOST_GRACE_SECONDS = 3_600.0
"""A caller waits for pods no longer: an operator chooses the grace of a run, and may write 10^9 seconds."""

_JOB_CONDITIONS = {"Completed": "Complete", "Failed": "Failed"}


def live_object(api: Api, namespace: str, name: str, kinds: Collection[str] = tuple(API_VERSIONS)) -> Object | None:
    """The object that runs the run of this name, of whichever of the kinds; None where there is none."""
    for kind in kinds:
        if found := api.get(API_VERSIONS[kind], kind, name, namespace):
            return {"apiVersion": API_VERSIONS[kind], "kind": kind, **found}
    return None


def condition(live: Mapping[str, Any] | None, kind: str) -> Object:
    """A true condition (Completed, Failed); empty when it does not hold."""
    wanted = _JOB_CONDITIONS[kind] if (live or {}).get("kind") == "Job" else kind
    conditions = ((live or {}).get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == wanted and each["status"] == "True"), {})


def ended(live: Mapping[str, Any] | None) -> str | None:
    """`Completed`, `Failed`, or None for one that goes on or does not exist."""
    state = ((live or {}).get("status") or {}).get("terminalState")
    return str(state) if state else next((kind for kind in _JOB_CONDITIONS if condition(live, kind)), None)


def restarts(live: Mapping[str, Any] | None) -> int:
    """Counted restarts: of the whole set, or of the pod of a Job."""
    status = (live or {}).get("status") or {}
    return whole(status.get("restarts" if (live or {}).get("kind") == "JobSet" else "failed")) or 0


def wanted_pods(live: Object) -> int:
    """How many pods it has while it goes on."""
    if live["kind"] == "Job":
        return _count(live["spec"].get("parallelism"))
    if live["kind"] == "Deployment":
        return _count(live["spec"].get("replicas"))
    jobs = live["spec"]["replicatedJobs"]
    return sum(_count(job.get("replicas")) * _count(job["template"]["spec"].get("parallelism")) for job in jobs)


def _count(value: Any) -> int:
    """A number of pods; Kubernetes' default where there is none."""
    return 1 if value is None else whole(value, 0) or 0


def created(live: Mapping[str, Any] | None) -> str:
    """When it was submitted, as the cluster writes times; empty where that is not known."""
    return str((live or {}).get("metadata", {}).get("creationTimestamp") or "")


def seconds(live: Mapping[str, Any] | None) -> float | None:
    """From its submission to its completion, by the cluster's clock (whole seconds)."""
    completed = condition(live, "Completed").get("lastTransitionTime")
    if not (completed and created(live)):
        return None
    return (datetime.fromisoformat(completed) - datetime.fromisoformat(created(live))).total_seconds()


def grace(live: Mapping[str, Any] | None) -> float:
    """Seconds from SIGTERM to SIGKILL that its pods have, the longest of all roles; at most `MOST_GRACE_SECONDS`."""
    spec = (live or {}).get("spec") or {}
    jobs = [each["template"] for each in spec.get("replicatedJobs") or ()] or [{"spec": spec}]
    pods = [(((job.get("spec") or {}).get("template") or {}).get("spec") or {}) for job in jobs]
    asked = [pod.get("terminationGracePeriodSeconds", GRACE_SECONDS) for pod in pods]
    return min(MOST_GRACE_SECONDS, max(number(each, 0) or 0.0 for each in asked))


def hash_of(obj: Mapping[str, Any] | None) -> str | None:
    """Hash of the description that an object was made for."""
    return _annotation(obj, HASH_ANNOTATION)


def attempt_of(obj: Mapping[str, Any] | None) -> str:
    """Name of the attempt that an object is; empty where it has none, `UNKNOWN_ATTEMPT` where it is none of ours."""
    return checked_attempt(_annotation(obj, ATTEMPT_ANNOTATION) or "")


def checked_attempt(value: Any) -> str:
    """An attempt in the form that `submit.new_attempt` writes, or empty; anything else is `UNKNOWN_ATTEMPT`.

    Operators of a namespace may write it, and it becomes the name of a folder on the controller.
    """
    if value == "" or (isinstance(value, str) and ATTEMPT.fullmatch(value)):
        return str(value)
    return UNKNOWN_ATTEMPT


def workload_of(obj: Mapping[str, Any] | None) -> str:
    """Entry of the catalogue that an object is of; empty where that is not known."""
    return _annotation(obj, WORKLOAD_ANNOTATION) or ""


def program_of(obj: Mapping[str, Any] | None) -> str:
    """Hash of the folder of code and the command that an object is of; empty where that is not known."""
    return _annotation(obj, PROGRAM_ANNOTATION) or ""


def _annotation(obj: Mapping[str, Any] | None, name: str) -> str | None:
    return ((obj or {}).get("metadata", {}).get("annotations") or {}).get(name)
