"""Another attempt at a run without its description, from its live object or from the manifest in its record.

A user who may write records is not necessarily allowed to run pods. So a kept manifest is checked against the form of
our own manifests, and nothing else of it is used. A record never creates an object of another kind, name or namespace,
nor a pod with more rights than those of trainings.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from ..core.errors import TrainyardError
from ..core.plan import Plan, Step
from ..core.waiter import CLOCK, Clock, Pauses, Waits
from ..kube.api import Api, Object
from ..kube.apply import PatientApi
from . import record
from .names import (
    API_VERSIONS,
    ATTEMPT_ANNOTATION,
    CONTAINER,
    DECIDING_ANNOTATION,
    HASH_ANNOTATION,
    MANAGED,
    MANIFEST_KEY,
    NAME_LABEL,
    ROLE_LABEL,
    RUNS,
    TOPOLOGY_ANNOTATION,
    WORKLOAD_ANNOTATION,
)
from .pods import container_security, pod_security
from .run_index import Found
from .submit import replacing

ANNOTATIONS = (HASH_ANNOTATION, WORKLOAD_ANNOTATION, TOPOLOGY_ANNOTATION, DECIDING_ANNOTATION)
JOBSET = {"network", "successPolicy", "failurePolicy", "startupPolicy", "replicatedJobs", "suspend"}
JOB = {
    "completionMode", "completions", "parallelism", "backoffLimit", "podFailurePolicy", "successPolicy",
    "activeDeadlineSeconds", "podReplacementPolicy", "template", "suspend", "selector", "manualSelector",
}  # fmt: skip
POD = {
    "restartPolicy", "automountServiceAccountToken", "enableServiceLinks", "terminationGracePeriodSeconds",
    "imagePullSecrets", "securityContext", "nodeSelector", "tolerations", "affinity", "topologySpreadConstraints",
    "priorityClassName", "containers", "volumes", "dnsPolicy", "schedulerName",
}  # fmt: skip
PROCESS = {
    "name", "image", "imagePullPolicy", "command", "args", "env", "workingDir", "ports", "resources",
    "securityContext", "volumeMounts", "terminationMessagePath", "terminationMessagePolicy",
}  # fmt: skip
VOLUME = {"name", "emptyDir", "image", "persistentVolumeClaim"}
VALUE = {"fieldRef", "resourceFieldRef", "secretKeyRef"}
"""Allowed fields, by object: those of our own manifests, and those that the API server adds."""


class Again:
    """A new submission of an existing run.

    :param found: the run in the cluster.
    :param say: shows a line of progress to the user.
    """

    def __init__(self, api: Api, found: Found, say: Callable[[str], None], clock: Clock = CLOCK) -> None:
        self._api, self._found, self._say, self._clock = api, found, say, clock
        self.result = record.read(found.kept)

    def plan(self, *, fresh: bool = False) -> Plan:
        """Return the steps to a new attempt, from the newest checkpoint.

        :param fresh: start from the first step; a running run is stopped after it has saved.
        :raises TrainyardError: the run is running and `fresh` is not set, or its manifest is missing or invalid.
        """
        found = self._found
        if found.goes_on and not fresh:
            raise TrainyardError(f"The run {found.name} is running.", remedy="There is nothing to continue.")
        kept = manifest(found.live) if found.live else record.kept(found.kept, MANIFEST_KEY)
        if kept is None:
            raise TrainyardError(
                f"The manifest of the run {found.name} is no longer in the cluster.",
                remedy=f"Submit it from its description: playbooks/train.yml -e run={found.name}.",
            )
        resume = "fresh" if fresh else "auto"
        make = partial(another, kept, found.namespace, found.name, resume=resume)
        make("check")
        where = "from its first step" if fresh else "from its newest checkpoint"
        step = Step(f"Submit the run {found.name} again, {where}", Waits(partial(self._submit, make), self._clock))
        before = {"run": found.name, "result": record.RUNNING if found.goes_on else self.result.get("result")}
        return Plan([step], before, {"run": found.name, "result": record.RUNNING})

    def _submit(self, make: Callable[[str], Object]) -> Pauses[None]:
        found = self._found
        attempt = yield from replacing(
            self._api, found.namespace, found.name, found.live, make, self._say, kinds=RUNS, clock=self._clock
        )
        kept = ("name", "workload", "topology", "description_hash", "train_steps", "accuracy_bound", "code", "files")
        self.result = {name: self.result[name] for name in kept if name in self.result}
        self.result |= {"attempt": attempt, "result": record.RUNNING, "submitted_at": record.now()}
        if found.kept:
            record.change(PatientApi(self._api, self._clock), found.kept, self.result, self._clock)
        self._say(f"training {found.name}: submitted")


def manifest(live: Mapping[str, Any]) -> Object:
    """Return the part of an object that is needed to create it again."""
    annotations = live["metadata"].get("annotations") or {}
    return {
        "apiVersion": live["apiVersion"],
        "kind": live["kind"],
        "metadata": {
            "name": live["metadata"]["name"],
            "namespace": live["metadata"]["namespace"],
            "annotations": {name: annotations[name] for name in ANNOTATIONS if name in annotations},
        },
        "spec": copy.deepcopy(live["spec"]),
    }


def another(kept: Any, namespace: str, name: str, attempt: str, *, resume: str) -> Object:
    """Return the object of another attempt.

    :param kept: result of `manifest`, which a user may have changed since.
    :param resume: `auto` continues from the newest checkpoint, `fresh` starts over.
    :raises TrainyardError: the manifest is not one of this run, or has what none of our trainings has.
    """
    try:
        return _another(kept, namespace, name, attempt, resume)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise _forged(name, f"it has an unknown form ({type(error).__name__}: {error})") from error


def _another(kept: Any, namespace: str, name: str, attempt: str, resume: str) -> Object:
    kind, meta, spec = kept["kind"], kept["metadata"], copy.deepcopy(kept["spec"])
    if kind not in RUNS or kept["apiVersion"] != API_VERSIONS[kind]:
        raise _forged(name, f"its kind is {kept['apiVersion']} {kind}")
    if (meta["name"], meta["namespace"]) != (name, namespace):
        raise _forged(name, f"it belongs to {meta['namespace']}/{meta['name']}")
    jobs = [spec]
    if kind == "JobSet":
        _only(name, spec, JOBSET, "JobSet")
        jobs = [each["template"]["spec"] for each in spec["replicatedJobs"]]
        for each in spec["replicatedJobs"]:
            _only(name, each, {"name", "groupName", "replicas", "template"}, "role")
            each["template"]["metadata"] = {"labels": {NAME_LABEL: name, ROLE_LABEL: str(each["name"])}}
    spec.pop("suspend", None)
    for job in jobs:
        _job(name, job, attempt, resume)
    known = meta.get("annotations") or {}
    annotations = {key: str(known[key]) for key in ANNOTATIONS if key in known} | {ATTEMPT_ANNOTATION: attempt}
    labels = {**MANAGED, NAME_LABEL: name}
    made = {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations}
    return {"apiVersion": API_VERSIONS[kind], "kind": kind, "metadata": made, "spec": spec}


def _job(name: str, job: Object, attempt: str, resume: str) -> None:
    """Check one Job, and change it to another attempt."""
    _only(name, job, JOB, "Job")
    for field in ("suspend", "selector", "manualSelector"):
        job.pop(field, None)  # they belong to the previous Job
    template = job["template"]
    role = str(template["metadata"]["labels"][ROLE_LABEL])
    template["metadata"] = {"labels": {NAME_LABEL: name, ROLE_LABEL: role}}
    pod = template["spec"]
    _only(name, pod, POD, "pod")
    if pod["securityContext"] != pod_security() or pod["automountServiceAccountToken"] is not False:
        raise _forged(name, "its pods request more rights than allowed")
    for volume in pod.get("volumes") or ():
        _only(name, volume, VOLUME, "volume")
    (process,) = pod["containers"]
    _only(name, process, PROCESS, "container")
    if process["name"] != CONTAINER or process["securityContext"] != container_security():
        raise _forged(name, "its containers request more rights than allowed")
    for variable in process.get("env") or ():
        _only(name, variable, {"name", "value", "valueFrom"}, "variable")
        _only(name, variable.get("valueFrom") or {}, VALUE, "value")
        if variable["name"] == "RESUME":
            variable["value"] = resume
    # The arguments of a user's program are its own.
    ours = any(each.startswith("--log_dir=") for each in process.get("args") or ())
    changed = {"--attempt=": attempt, "--resume=": resume} if ours else {}
    process["args"] = [
        next((begin + value for begin, value in changed.items() if each.startswith(begin)), each)
        for each in process.get("args") or ()
    ]


def _only(name: str, found: Mapping[str, Any], known: Collection[str], what: str) -> None:
    if more := sorted(map(str, found.keys() - set(known))):
        raise _forged(name, f"a {what} in it has unknown fields: {', '.join(more)}")


def _forged(name: str, why: str) -> TrainyardError:
    return TrainyardError(
        f"The kept manifest of the run {name} is invalid: {why}.",
        remedy=f"Submit it from its description: playbooks/train.yml -e run={name}.",
    )
