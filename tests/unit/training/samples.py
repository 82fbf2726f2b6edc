"""One training, in full."""

from __future__ import annotations

from typing import Any

from trainyard.trainings.description_checks import FLAGS, ROLE
from trainyard.trainings.model import Training
from trainyard.trainings.roles import ROLES
from trainyard.trainings.spec import parse_training

LIMITS = {"limits": {"cpu": "2", "memory": "1Gi"}}
DATA_IMAGE = "registry.example.com/trainyard/mnist-data@sha256:" + "0" * 64
COMMON = {
    "image": "registry.example.com/trainyard/tensorflow:2.21.0",
    "command": ["/opt/venv/bin/python", "-m", "training.mnist_ps.main"],
    **LIMITS,
}
DESCRIBED: dict[str, Any] = {
    "name": "mnist",
    "workload": "mnist_ps",
    "flags": {"train_steps": 200},
    "data": {"image": DATA_IMAGE},
    "logs": {"node": "worker1", "path": "/var/lib/trainyard/trainings/mnist"},
}
REPLICAS: dict[str, dict[str, int]] = {
    "parameter_server": {"chief": 1, "ps": 1, "worker": 2},
    "multi_worker": {"ps": 1, "worker": 2},
    "single": {"chief": 1},
    "service": {"server": 1},
}


def described(**changes: Any) -> dict[str, Any]:
    """The complete description with changes: of flags, of one role, of all roles, or of the training."""
    data = {**DESCRIBED, "flags": dict(DESCRIBED["flags"])}
    if changes.get("topology") == "service":
        data |= {"token": "TOKEN", "flags": {}}
    common: dict[str, Any] = {**COMMON}
    own: dict[str, dict[str, Any]] = {"worker": {"requests": {"cpu": "250m"}}}
    for key, value in changes.items():
        if key in FLAGS:
            data["flags"][key] = value
        elif key in ROLES:
            own[key] = value
        elif key in ROLE and key != "name":
            common[key] = value
        else:
            data[key] = value
    replicas = REPLICAS.get(changes.get("topology", "parameter_server"), {})
    names = [*replicas, *(name for name in own if name not in replicas and name in changes)]
    roles = [{"name": name, **common, "replicas": replicas.get(name, 1), **own.get(name, {})} for name in names]
    return {"roles": roles, **data}


def training(**changes: Any) -> Training:
    return parse_training(described(**changes))
