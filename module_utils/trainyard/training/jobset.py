"""From a training to a JobSet (jobset.x-k8s.io/v1alpha2, v0.12): pure data, no cluster.

Another back end needs its own `hostname` and its own wrapping of `pod_template`; `tf_config` and the pod stay.

How failures travel: a pod failure policy turns an exit code into the reason `PodFailurePolicy` and the message
"... failed with exit code N matching FailJob rule ..." of its Job; the JobSet's failure policy reads both.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..kube.api import Object
from ..kube.apply import content_hash
from .pods import container_security, lost_node_tolerations, pod_security, pull_secrets
from .spec import ROLES, Training

API_VERSION = "jobset.x-k8s.io/v1alpha2"
CONTAINER = "tensorflow"
NAME_LABEL = "jobset.sigs.k8s.io/jobset-name"
ROLE_LABEL = "trainyard.dev/role"
HASH_ANNOTATION = "trainyard.dev/spec-hash"
ATTEMPT_ANNOTATION = "trainyard.dev/attempt"
INDEX_LABEL = "batch.kubernetes.io/job-completion-index"

EXIT_REFUSED = 2
EXIT_BOUND = 3
EXIT_DIVERGED = 4
EXIT_PREEMPTED = 42
"""Exit codes of the training: input that cannot work, accuracy below the bound, a loss that is not finite; told to stop
by SIGTERM, and everything is saved."""

DATA_ROLES = ("chief", "worker")
GRACE_SECONDS = 30
"""The chief needs up to 25 s to save and to end when it is told to stop; ps and workers serve it until then."""
THREADS = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS")
"""TensorFlow would take the cores of the node, and be throttled by the limit of the pod."""


def hostname(training: Training, role: str, index: int) -> str:
    """DNS name of a pod inside the namespace: `<jobset>-<role>-0-<index>.<jobset>`."""
    return f"{training.name}-{role}-0-{index}.{training.name}"


def cluster(training: Training) -> dict[str, list[str]]:
    """The `cluster` part of TF_CONFIG: addresses by role."""
    return {
        role: [f"{hostname(training, role, index)}:{training.port}" for index in range(training.roles[role].replicas)]
        for role in ROLES
    }


def tf_config(training: Training, role: str) -> str:
    """TF_CONFIG as the value of an environment variable; the kubelet puts the pod's index in."""
    members = json.dumps(cluster(training), separators=(",", ":"))
    return f'{{"cluster":{members},"task":{{"type":"{role}","index":$(JOB_COMPLETION_INDEX)}}}}'


def logs_claim(training: Training) -> str:
    """Name of the claim with the chief's files."""
    return training.logs.claim or f"{training.name}-logs"


def run_folder(training: Training) -> str:
    """Where the run's folder is in the chief: on a claim that several runs share it has the run's name."""
    return f"/logs/{training.name}" if training.logs.claim else "/logs"


def pod_template(training: Training, role: str, attempt: str, resume: str = "auto") -> Object:
    """The pod of one role.

    :param attempt: name of this submission; restarts of the set share it.
    :param resume: whether the attempt goes on from the run's newest checkpoint (`auto`) or starts over (`fresh`).
    """
    mounts: list[Object] = [{"name": "tmp", "mountPath": "/tmp"}]
    volumes: list[Object] = [{"name": "tmp", "emptyDir": {"sizeLimit": "512Mi"}}]
    flags = dict(training.flags)
    if training.data_image and role in DATA_ROLES:
        flags["data_dir"] = "/data"
        mounts.append({"name": "data", "mountPath": "/data", "readOnly": True})
        image = {"reference": training.data_image, "pullPolicy": training.image_pull_policy}
        volumes.append({"name": "data", "image": image})
    if role == "chief":
        flags |= {"log_dir": run_folder(training), "attempt": attempt, "resume": resume}
        mounts.append({"name": "logs", "mountPath": "/logs"})
        volumes.append({"name": "logs", "persistentVolumeClaim": {"claimName": logs_claim(training)}})
    env: list[Object] = [
        # Must come before TF_CONFIG: the kubelet expands $(NAME) only from variables above.
        {
            "name": "JOB_COMPLETION_INDEX",
            "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX_LABEL}']"}},
        },
        {"name": "TF_CONFIG", "value": tf_config(training, role)},
        {"name": "HOME", "value": "/tmp"},
        {"name": "PYTHONUNBUFFERED", "value": "1"},
        *({"name": name, "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}} for name in THREADS),
    ]
    # The API server refuses a name twice.
    env = [each for each in env if each["name"] not in training.env]
    env += [{"name": name, "value": value} for name, value in training.env.items()]
    ports = {"tensorflow": training.ports[0]} | ({"control": training.ports[1]} if role == "chief" else {})
    container = {
        "name": CONTAINER,
        "image": training.image,
        "imagePullPolicy": training.image_pull_policy,
        "command": list(training.command),
        "args": [f"--{name}={value}" for name, value in flags.items()],
        "env": env,
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports.items()],
        "resources": {
            "limits": dict(training.roles[role].limits),
            "requests": dict(training.roles[role].requests),
        },
        "securityContext": container_security(),
        "volumeMounts": mounts,
    }
    return {
        "metadata": {"labels": {ROLE_LABEL: role}},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": GRACE_SECONDS,
            **pull_secrets(training),
            "securityContext": pod_security(),
            "tolerations": lost_node_tolerations(),
            # Each role by itself: a lost node must not take all workers.
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "kubernetes.io/hostname",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": {NAME_LABEL: training.name, ROLE_LABEL: role}},
                }
            ],
            "containers": [container],
            "volumes": volumes,
        },
    }


def _on_exit(action: str, codes: Sequence[int]) -> Object:
    return {"action": action, "onExitCodes": {"containerName": CONTAINER, "operator": "In", "values": sorted(codes)}}


def _on_disruption(action: str) -> Object:
    return {"action": action, "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


def _replicated_job(training: Training, role: str, attempt: str, resume: str = "auto") -> Object:
    """One Indexed Job per role. A worker is mended inside its Job; chief and ps hold state that the others need, so
    their first failure is the Job's, and the JobSet decides."""
    replicas = training.roles[role].replicas
    refused = [EXIT_REFUSED, EXIT_BOUND, EXIT_DIVERGED] if role == "chief" else [EXIT_REFUSED]
    mend = "Ignore" if role == "worker" else "FailJob"
    spec: Object = {
        "completionMode": "Indexed",
        "completions": replicas,
        "parallelism": replicas,
        "backoffLimit": training.worker_retries if role == "worker" else 0,
        "podFailurePolicy": {
            "rules": [_on_exit("FailJob", refused), _on_exit(mend, [EXIT_PREEMPTED]), _on_disruption(mend)]
        },
        "template": pod_template(training, role, attempt, resume),
    }
    if role == "chief" and training.timeout:
        spec["activeDeadlineSeconds"] = training.timeout
    return {"name": role, "replicas": 1, "template": {"metadata": {"labels": {ROLE_LABEL: role}}, "spec": spec}}


def failure_policy(training: Training) -> Object:
    """First matching rule wins; no rule means a counted restart, which the last one says in words."""
    policy = ["PodFailurePolicy"]
    refused = f"exit code ({EXIT_REFUSED}|{EXIT_BOUND}|{EXIT_DIVERGED}) "
    preempted = [f"exit code {EXIT_PREEMPTED} ", "condition DisruptionTarget "]
    rules: list[Any] = [
        {"name": "refused", "action": "FailJobSet", "onJobFailureReasons": policy,
         "onJobFailureMessagePatterns": [refused]},
        {"name": "deadline", "action": "FailJobSet", "onJobFailureReasons": ["DeadlineExceeded"]},
        {"name": "preempted", "action": "RestartJobSetAndIgnoreMaxRestarts", "onJobFailureReasons": policy,
         "onJobFailureMessagePatterns": preempted, "targetReplicatedJobs": ["chief", "ps"]},
        {"name": "crashed", "action": "RestartJobSet", "targetReplicatedJobs": list(ROLES)},
    ]  # fmt: skip
    # BlockingRecreate: a new chief must never meet a ps of the attempt before.
    return {"maxRestarts": training.max_restarts, "restartStrategy": "BlockingRecreate", "rules": rules}


def jobset(training: Training, attempt: str, resume: str = "auto") -> Object:
    """The JobSet of one attempt at a run; see `pod_template`."""
    return {
        "apiVersion": API_VERSION,
        "kind": "JobSet",
        "metadata": {
            "name": training.name,
            "namespace": training.namespace,
            "annotations": {HASH_ANNOTATION: spec_hash(training), ATTEMPT_ANNOTATION: attempt},
        },
        "spec": {
            "network": {"enableDNSHostnames": True, "subdomain": training.name, "publishNotReadyAddresses": True},
            "successPolicy": {"operator": "All", "targetReplicatedJobs": ["chief"]},
            "failurePolicy": failure_policy(training),
            "replicatedJobs": [_replicated_job(training, role, attempt, resume) for role in ROLES],
        },
    }


def spec_hash(training: Training) -> str:
    """SHA-256 of everything that decides what a run does; equal for every attempt at the same run."""
    return content_hash([_replicated_job(training, role, "") for role in ROLES] + [failure_policy(training)])
