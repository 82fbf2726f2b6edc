"""The pod of a role: what it is told about the run, what it mounts, where it may run. Pure data, no cluster."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from ..kube.api import Object
from .gpus import SHARED, SHARING
from .model import Role, Training, Volume
from .names import ATTEMPT_ANNOTATION, CONTAINER, INDEX_LABEL, NAME_LABEL, ROLE_LABEL
from .pods import container_security, lost_node_tolerations, pod_security, pull_secrets

CODE = "/opt/trainyard/code"
"""Where code that is not in the image is mounted."""
TOKEN_KEY = "token"  # noqa: S105 - a key of a Secret, not its value
"""Key of the Secret that `token_secret` names."""
THREADS = ("TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS")
"""TensorFlow would take the cores of the node, and be throttled by the limit of the pod."""


def hostname(training: Training, role: str, index: int) -> str:
    """DNS name of a pod inside the namespace: `<jobset>-<role>-0-<index>.<jobset>`."""
    return f"{training.name}-{role}-0-{index}.{training.name}"


def cluster(training: Training) -> dict[str, list[str]]:
    """The `cluster` part of TF_CONFIG: addresses by role."""
    return {
        name: [f"{hostname(training, name, index)}:{role.port}" for index in range(role.replicas)]
        for name, role in training.roles.items()
        if role.kind.member
    }


def tf_config(training: Training, role: str) -> str:
    """TF_CONFIG as the value of an environment variable; the kubelet puts the pod's index in."""
    return f'{{"cluster":{_members(training)},"task":{{"type":"{role}","index":$(JOB_COMPLETION_INDEX)}}}}'


def _members(training: Training) -> str:
    return json.dumps(cluster(training), separators=(",", ":"))


def logs_claim(training: Training) -> str:
    """Name of the claim with the run's files."""
    return training.logs.claim or f"{training.name}-logs"


def run_folder(training: Training) -> str:
    """Where the run's folder is in its pods: on a claim that several runs share it has the run's name."""
    return f"/logs/{training.name}" if training.logs.claim else "/logs"


def token_secret(training: Training) -> str:
    """Name of the Secret with the token that a service asks for."""
    return f"{training.name}-token"


def volume_claim(training: Training, volume: Volume) -> str:
    """The claim of a volume, which the run makes itself for a folder of the nodes."""
    return volume.claim or f"{training.name}-{volume.name}"


def pod_labels(training: Training, role: str) -> dict[str, str]:
    """Labels by which the pods of a role are found."""
    return {NAME_LABEL: training.name, ROLE_LABEL: role}


def pod_template(training: Training, name: str, attempt: str, resume: str = "auto") -> Object:
    """The pod of one role.

    :param name: of the role.
    :param attempt: name of this submission; restarts of the set share it.
    :param resume: whether the attempt goes on from the run's newest checkpoint (`auto`) or starts over (`fresh`).
    """
    role = training.roles[name]
    volumes, mounts = _volumes(training, role)
    service = training.shape.back_end == "Deployment"
    container = {
        "name": CONTAINER,
        "image": role.image,
        "imagePullPolicy": training.image_pull_policy,
        "command": list(role.command),
        "args": [f"--{key}={value}" for key, value in _flags(training, role, attempt, resume).items()],
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
        # A Job counts its pods itself and is made anew for each attempt; a Deployment goes by what its template says.
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
    """What the program is told by flags: nothing where its workload has none."""
    flags = dict(training.flags)
    if not flags:
        return {}
    if role.kind.reads_data and (training.data_image or training.data_claim):
        flags["data_dir"] = "/data"
    if role.kind.writes_run:
        flags |= {"log_dir": run_folder(training), "attempt": attempt, "resume": resume}
    return flags


def _cpus(quantity: str) -> float:
    """CPUs of a quantity such as `500m` or `2`."""
    return float(quantity.removesuffix("m")) / 1000 if quantity.endswith("m") else float(quantity)


def _environment(training: Training, role: Role, resume: str) -> list[Object]:
    told = {"RUN": training.name, "RESUME": resume, "HOME": "/tmp", "PYTHONUNBUFFERED": "1"}
    if cluster(training):
        told |= {
            "TF_CONFIG": tf_config(training, role.name),
            # JSON and a literal of Python at once, for programs older than TF_CONFIG.
            "POD_NAME": f"{role.name}-$(JOB_COMPLETION_INDEX)-{training.name}",
            "CLUSTER_CONFIG": _members(training),
        }
    if role.kind.reads_data and (training.data_image or training.data_claim):
        told["DATA_DIR"] = "/data"
    if role.kind.writes_run:
        told |= {"LOG_DIR": run_folder(training), "CHECKPOINT_DIR": f"{run_folder(training)}/checkpoints"}
    if training.code:
        told["PYTHONPATH"] = CODE
    if role.gpus:
        # TensorFlow would take the whole memory of a GPU at its start, and leave none to others that share it.
        told["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
    # At least two: with one CPU no step was ever done, because an operation that waits for another process had the only
    # thread.
    told["TF_NUM_INTEROP_THREADS"] = str(max(2, math.ceil(_cpus(role.limits["cpu"]))))
    index = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX_LABEL}']"}}
    env: list[Object] = [
        # Must come before its users: the kubelet expands $(NAME) only from variables above.
        {"name": "JOB_COMPLETION_INDEX", "valueFrom": index},
        *({"name": name, "value": value} for name, value in told.items()),
        *({"name": name, "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}} for name in THREADS),
    ]
    if training.token:
        env.append(_variable(training.token, {"secret": token_secret(training), "key": TOKEN_KEY}))
    # The API server refuses a name twice; what the description says has the last word.
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
    """Volumes of a pod, and where its container has them."""
    found: list[tuple[str, str, bool, Object]] = [("tmp", "/tmp", False, {"emptyDir": {"sizeLimit": "512Mi"}})]
    if role.kind.reads_data and training.data_image:
        found.append(("data", "/data", True, _image(training, training.data_image)))
    elif role.kind.reads_data and training.data_claim:
        found.append(("data", "/data", True, _claim(training.data_claim, read_only=True)))
    if role.kind.writes_run:
        found.append(("logs", "/logs", False, _claim(logs_claim(training))))
    if training.code:
        found.append(("code", CODE, True, _image(training, training.code)))
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
    """Where the pods of a role may run."""
    placement: Object = {"tolerations": [*lost_node_tolerations(), *map(dict, role.tolerations)]}
    if role.gpus > 1:
        # The device plugin fails a pod that asks for two shares, on a node where GPUs are shared.
        whole = {"key": SHARING, "operator": "NotIn", "values": [SHARED]}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [whole]}]}
        placement["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    if role.node_selector:
        placement["nodeSelector"] = dict(role.node_selector)
    if role.priority:
        placement["priorityClassName"] = role.priority
    if role.spread:
        # Each role by itself: a lost node must not take all workers.
        placement["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {NAME_LABEL: training.name, ROLE_LABEL: role.name}},
            }
        ]
    return placement
