"""The object that runs a training: a JobSet, a Job for a single pod, or a Deployment for a service.

Pure data, no cluster. JobSets use the API jobset.x-k8s.io/v1alpha2, v0.12.

Failures propagate in two stages. A pod failure policy turns an exit code into the reason `PodFailurePolicy` and the
message "... failed with exit code N matching FailJob rule ..." of its Job. The JobSet's failure policy reads both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..kube.api import Object
from ..kube.apply import content_hash
from .model import Role, Training
from .names import (
    API_VERSIONS,
    ATTEMPT_ANNOTATION,
    CONTAINER,
    DECIDING_ANNOTATION,
    HASH_ANNOTATION,
    MANAGED,
    NAME_LABEL,
    ROLE_LABEL,
    TOPOLOGY_ANNOTATION,
    WORKLOAD_ANNOTATION,
)
from .roles import EXIT_BOUND, EXIT_DIVERGED, EXIT_REFUSED, EXIT_STOPPED, EXIT_VOLUME
from .template import pod_labels, pod_template

_HOPELESS = (EXIT_REFUSED, EXIT_BOUND, EXIT_DIVERGED, EXIT_VOLUME)
"""Exit codes of the deciding role after which every retry fails in the same way until an operator changes something."""

_FORMER_TIMEOUT = 900
"""The default of `timeout` in earlier versions, in seconds. Now a run has a time limit only if it was given one."""

_NO_LIMIT = 2**31 - 1
"""Kubernetes' own value for no back-off limit: the largest that the field holds."""


def run_object(training: Training, attempt: str, resume: str = "auto") -> Object:
    """Return the object that runs one attempt at a run; see `template.pod_template` for the parameters."""
    kind = training.shape.back_end
    return {
        "apiVersion": API_VERSIONS[kind],
        "kind": kind,
        "metadata": {
            "name": training.name,
            "namespace": training.namespace,
            "labels": {**MANAGED, NAME_LABEL: training.name},
            "annotations": {
                HASH_ANNOTATION: spec_hash(training),
                ATTEMPT_ANNOTATION: attempt,
                WORKLOAD_ANNOTATION: training.workload,
                TOPOLOGY_ANNOTATION: training.topology,
                DECIDING_ANNOTATION: training.deciding,
            },
        },
        "spec": _spec(training, attempt, resume),
    }


def spec_hash(training: Training) -> str:
    """Return the SHA-256 of everything that decides what a run does. It is equal for all attempts at the same run."""
    bounds = training.success
    success: list[Any] = [bounds.metric, bounds.at_least] if bounds.metric else []
    success += [{"at_most": bounds.at_most}] if bounds.at_most is not None else []
    data = [training.data_import.sha256] if training.data_import else []
    # A run of an earlier version, which was not given a limit, is the same run.
    limited = replace(training, timeout=training.timeout or _FORMER_TIMEOUT)
    return content_hash([_spec(limited, "", "auto"), *success, *data])


def _spec(training: Training, attempt: str, resume: str) -> Object:
    if training.shape.back_end == "Deployment":
        name = training.decider.name
        return {
            "replicas": 1,
            # Two pods at once would write the same files.
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": pod_labels(training, name)},
            "template": pod_template(training, name, attempt, resume),
        }
    if training.shape.back_end == "Job":
        (role,) = training.roles.values()
        return {**_job(training, role, attempt, resume), "backoffLimit": training.max_restarts}
    return {
        "network": {"enableDNSHostnames": True, "subdomain": training.name, "publishNotReadyAddresses": True},
        "successPolicy": {"operator": "All", "targetReplicatedJobs": [training.decider.name]},
        "failurePolicy": failure_policy(training),
        "replicatedJobs": [
            {
                "name": role.name,
                "replicas": 1,
                "template": {
                    "metadata": {"labels": {NAME_LABEL: training.name, ROLE_LABEL: role.name}},
                    "spec": _job(training, role, attempt, resume),
                },
            }
            for role in training.roles.values()
        ],
    }


def _job(training: Training, role: Role, attempt: str, resume: str) -> Object:
    """Return the Indexed Job of a role.

    Failed pods of a `restarted` role are restarted inside its Job. The other roles hold state that all roles need, so
    their first failure fails the Job, and the JobSet decides. A standalone Job has no JobSet that could decide, so it
    retries itself. The Job of a role that the run does not need never fails: no rule and no limit ends it.
    """
    decides = role is training.decider
    refused = _HOPELESS if decides else [EXIT_REFUSED]
    stopped = "Ignore" if role.kind.restarted or training.shape.back_end == "Job" else "FailJob"
    rules = [_on_exit(stopped, [EXIT_STOPPED]), _on_disruption(stopped)]
    spec: Object = {
        "completionMode": "Indexed",
        "completions": role.replicas,
        "parallelism": role.replicas,
        "backoffLimit": _backoff_limit(training, role),
        "podFailurePolicy": {"rules": [_on_exit("FailJob", refused), *rules] if role.kind.needed else rules},
        "template": pod_template(training, role.name, attempt, resume),
    }
    if decides and role.replicas > 1:
        spec["successPolicy"] = {"rules": [{"succeededIndexes": "0"}]}
    if decides and training.timeout:
        spec["activeDeadlineSeconds"] = training.timeout
    return spec


def _backoff_limit(training: Training, role: Role) -> int:
    if not role.kind.needed:
        return _NO_LIMIT
    return training.worker_retries if role.kind.restarted else 0


def _on_exit(action: str, codes: Sequence[int]) -> Object:
    return {"action": action, "onExitCodes": {"containerName": CONTAINER, "operator": "In", "values": sorted(codes)}}


def _on_disruption(action: str) -> Object:
    return {"action": action, "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


def failure_policy(training: Training) -> Object:
    """Return the failure policy of a JobSet.

    The first matching rule applies. Without a match JobSet restarts and counts, which the last rule makes explicit.
    """
    policy = ["PodFailurePolicy"]
    refused = f"exit code ({'|'.join(map(str, _HOPELESS))}) "
    preempted = [f"exit code {EXIT_STOPPED} ", "condition DisruptionTarget "]
    holders = [role.name for role in training.roles.values() if not role.kind.restarted]
    rules: list[Any] = [
        {"name": "refused", "action": "FailJobSet", "onJobFailureReasons": policy,
         "onJobFailureMessagePatterns": [refused]},
        {"name": "deadline", "action": "FailJobSet", "onJobFailureReasons": ["DeadlineExceeded"]},
        {"name": "preempted", "action": "RestartJobSetAndIgnoreMaxRestarts", "onJobFailureReasons": policy,
         "onJobFailureMessagePatterns": preempted, "targetReplicatedJobs": holders},
        {"name": "crashed", "action": "RestartJobSet", "targetReplicatedJobs": list(training.roles)},
    ]  # fmt: skip
    # BlockingRecreate: a new chief must never connect to a ps of the previous attempt.
    return {"maxRestarts": training.max_restarts, "restartStrategy": "BlockingRecreate", "rules": rules}
