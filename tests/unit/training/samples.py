"""One training, as a site describes it."""

from __future__ import annotations

from ansible.module_utils.trainyard.training.spec import Training, parse_training

LIMITS = {"limits": {"cpu": "2", "memory": "1Gi"}}
DATA = {
    "name": "mnist",
    "namespace": "trainings",
    "image": "registry.example.com/trainyard/tensorflow:2.21.0",
    "data_image": "registry.example.com/trainyard/mnist-data@sha256:" + "0" * 64,
    "command": ["/opt/venv/bin/python", "-m", "training.mnist_ps.main"],
    "train_steps": 200,
    "chief": {**LIMITS},
    "ps": {"replicas": 1, **LIMITS},
    "worker": {"replicas": 2, **LIMITS, "requests": {"cpu": "250m"}},
    "logs": {"node": "worker1", "path": "/var/lib/trainyard/trainings/mnist"},
}


def training(**changes: object) -> Training:
    return parse_training({**DATA, **changes})
