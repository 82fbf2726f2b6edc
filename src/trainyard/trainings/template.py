"""The pod of a role: its flags, environment, mounts and placement. Pure data, no cluster."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from ..kube.api import Object
from ..kube.placement import amount
from .gpu_requests import SHARED, SHARING
from .model import Role, Training, Volume
from .names import ATTEMPT_ANNOTATION, CONTAINER, INDEX_LABEL, NAME_LABEL, ROLE_LABEL
from .pods import container_security, lost_node_tolerations, pod_security, pull_secrets

CODE_VOLUME = "code"
"""Name of the volume with the image of code."""
CODE = "/opt/trainyard/code"
"""Mount path of code that is not part of the image."""
TOKEN_KEY = "token"  # noqa: S105 - a key of a Secret, not its value
"""Key of the Secret that `token_secret` names."""
THREADS = ("TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS")
"""Variables for the number of threads. By default TensorFlow uses all cores of the node and is throttled by the pod's
limit."""


def hostname(training: Training, role: str, index: int) -> str:
    """Return the DNS name of a pod inside the namespace: `<jobset>-<role>-0-<index>.<jobset>`."""
    return f"{training.name}-{role}-0-{index}.{training.name}"


def cluster(training: Training) -> dict[str, list[str]]:
    """Return the `cluster` part of TF_CONFIG: addresses by role."""
    return {
        name: [f"{hostname(training, name, index)}:{role.port}" for index in range(role.replicas)]
        for name, role in training.roles.items()
        if role.kind.member
    }


def tf_config(training: Training, role: str) -> str:
    """Return TF_CONFIG as the value of an environment variable, in which the kubelet expands the pod's index."""
    return f'{{"cluster":{_members(training)},"task":{{"type":"{role}","index":$(JOB_COMPLETION_INDEX)}}}}'


def _members(training: Training) -> str:
    return json.dumps(cluster(training), separators=(",", ":"))


def logs_claim(training: Training) -> str:
    """Return the name of the claim with the run's files."""
    return training.logs.claim or f"{training.name}-logs"


def run_folder(training: Training) -> str:
    """Return the path of the run's folder in its pods. On a shared claim it has the run's name."""
    return f"/logs/{training.name}" if training.logs.claim else "/logs"


def token_secret(training: Training) -> str:
    """Return the name of the Secret with the access token of a service."""
    return f"{training.name}-token"


def volume_claim(training: Training, volume: Volume) -> str:
    """Return the name of a volume's claim. For a folder of the nodes it is the run's own."""
    return volume.claim or f"{training.name}-{volume.name}"


def pod_labels(training: Training, role: str) -> dict[str, str]:
    """Return the labels that select the pods of a role."""
    return {NAME_LABEL: training.name, ROLE_LABEL: role}


def pod_template(training: Training, name: str, attempt: str, resume: str = "auto") -> Object:
    """Return the pod template of one role.

    :param name: name of the role.
    :param attempt: name of this submission, shared by all restarts of the set.
    :param resume: `auto` continues from the run's newest checkpoint, `fresh` starts over.
    """
    role = training.roles[name]
    volumes, mounts = _volumes(training, role)
    service = training.shape.back_end == "Deployment"
    container = {
        "name": CONTAINER,
        "image": role.image,
        "imagePullPolicy": training.image_pull_policy,
        **({"command": list(role.command)} if role.command else {}),
        "args": [*role.args, *(f"--{key}={value}" for key, value in _flags(training, role, attempt, resume).items())],
        "env": _environment(training, role, resume),
        **({"workingDir": CODE} if training.code else {}),
        "ports": _ports(training, role),
        "resources": {"limits": dict(role.limits), "requests": dict(role.requests)},
        "securityContext": container_security(),
        "volumeMounts": mounts,
        **({"readinessProbe": {"tcpSocket": {"port": role.port}, "periodSeconds": 2}} if service else {}),
    }
    metadata: Object = {"labels": pod_labels(training, name)}
    if service:
        # A Job sets the index itself and is created for each attempt; a Deployment needs both in its template.
        metadata["labels"][INDEX_LABEL] = "0"
        metadata["annotations"] = {ATTEMPT_ANNOTATION: attempt}
    return {
        "metadata": metadata,
        "spec": {
            "restartPolicy": "Always" if service else "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": role.grace,
            **pull_secrets(training),
            "securityContext": pod_security(),
            **_placement(training, role),
            "containers": [container],
            "volumes": volumes,
        },
    }


def _flags(training: Training, role: Role, attempt: str, resume: str) -> Mapping[str, Any]:
    """Return the flags of the program; empty if its workload has none."""
    flags = dict(training.flags)
    if not flags:
        return {}
    if role.kind.reads_data and (training.data_image or training.data_claim):
        flags["data_dir"] = training.data_mount
    if role.kind.writes_run:
        flags |= {"log_dir": run_folder(training), "attempt": attempt, "resume": resume}
    return flags


def _environment(training: Training, role: Role, resume: str) -> list[Object]:
    variables = {"RUN": training.name, "RESUME": resume, "HOME": "/tmp", "PYTHONUNBUFFERED": "1"}
    if cluster(training):
        variables |= {
            "TF_CONFIG": tf_config(training, role.name),
            # Valid both as JSON and as a Python literal, for programs older than TF_CONFIG.
            "POD_NAME": f"{role.name}-$(JOB_COMPLETION_INDEX)-{training.name}",
            "CLUSTER_CONFIG": _members(training),
        }
    if role.kind.reads_data and (training.data_image or training.data_claim):
        variables["DATA_DIR"] = training.data_mount
    if role.kind.writes_run:
        variables |= {"LOG_DIR": run_folder(training), "CHECKPOINT_DIR": f"{run_folder(training)}/checkpoints"}
    if training.code:
        variables["PYTHONPATH"] = CODE
    if role.gpus:
        # By default TensorFlow allocates the whole memory of a GPU at start, and leaves none to pods that share it.
        variables["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
    # At least two threads: with one, an operation that waits for another process blocks it, and no step completes.
    variables["TF_NUM_INTEROP_THREADS"] = str(max(2, math.ceil(amount(role.limits["cpu"]))))
    index = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX_LABEL}']"}}
    env: list[Object] = [
        # Must precede its uses: the kubelet expands $(NAME) only from earlier variables.
        {"name": "JOB_COMPLETION_INDEX", "valueFrom": index},
        *({"name": name, "value": value} for name, value in variables.items()),
        *({"name": name, "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}} for name in THREADS),
    ]
    if training.token:
        env.append(_variable(training.token, {"secret": token_secret(training), "key": TOKEN_KEY}))
    # The API server refuses duplicate names; the description takes precedence.
    env = [each for each in env if each["name"] not in role.env]
    return env + [_variable(str(name), value) for name, value in role.env.items()]


def _variable(name: str, value: Any) -> Object:
    if isinstance(value, Mapping):
        reference = {"name": value["secret"], "key": value["key"]}
        return {"name": name, "valueFrom": {"secretKeyRef": reference}}
    return {"name": name, "value": "" if value is None else str(value)}


def _ports(training: Training, role: Role) -> list[Object]:
    if training.shape.back_end == "Deployment":
        return [{"name": "http", "containerPort": role.port, "protocol": "TCP"}]
    if not role.kind.member:
        return []
    named = zip(("tensorflow", "control"), role.ports, strict=False)
    return [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in named]


def _volumes(training: Training, role: Role) -> tuple[list[Object], list[Object]]:
    """Return the volumes of a pod and the mounts of its container."""
    found: list[tuple[str, str, bool, Object]] = [("tmp", "/tmp", False, {"emptyDir": {"sizeLimit": "512Mi"}})]
    if role.kind.reads_data and training.data_image:
        found.append(("data", training.data_mount, True, _image(training, training.data_image)))
    elif role.kind.reads_data and training.data_claim:
        found.append(("data", training.data_mount, True, _claim(training.data_claim, read_only=True)))
    if role.kind.writes_run:
        found.append(("logs", "/logs", False, _claim(logs_claim(training))))
    if training.code:
        found.append((CODE_VOLUME, CODE, True, _image(training, training.code)))
    if role.shm:
        found.append(("shm", "/dev/shm", False, {"emptyDir": {"medium": "Memory", "sizeLimit": role.shm}}))
    for volume in role.volumes:
        source = (
            _image(training, volume.image)
            if volume.image
            else _claim(volume_claim(training, volume), read_only=volume.read_only)
        )
        found.append((volume.name, volume.mount, volume.read_only, source))
    mounts = [{"name": n, "mountPath": path, **({"readOnly": True} if fixed else {})} for n, path, fixed, _ in found]
    if training.data_folder:
        mounts = [{**each, "subPath": training.data_folder} if each["name"] == "data" else each for each in mounts]
    return [{"name": name, **source} for name, _, _, source in found], mounts


def _image(training: Training, reference: str) -> Object:
    return {"image": {"reference": reference, "pullPolicy": training.image_pull_policy}}


def _claim(name: str, *, read_only: bool = False) -> Object:
    return {"persistentVolumeClaim": {"claimName": name, **({"readOnly": True} if read_only else {})}}


def _placement(training: Training, role: Role) -> Object:
    """Return the scheduling constraints of a role's pods."""
    placement: Object = {"tolerations": [*lost_node_tolerations(), *map(dict, role.tolerations)]}
    if role.gpus > 1:
        # On a node with shared GPUs the device plugin fails a pod that requests more than one share.
        whole = {"key": SHARING, "operator": "NotIn", "values": [SHARED]}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [whole]}]}
        placement["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    if role.node_selector:
        placement["nodeSelector"] = dict(role.node_selector)
    if role.priority:
        placement["priorityClassName"] = role.priority
    if role.spread:
        # Spread each role on its own: the loss of one node must not take all workers.
        placement["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {NAME_LABEL: training.name, ROLE_LABEL: role.name}},
            }
        ]
    return placement
