"""Common settings of the pods in a namespace of trainings, and the Secret for their images.

The nodes pull the images of a training with this Secret.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

from ..kube.api import Object
from .model import Training

USER = 65532
"""UID and GID of the training's image and of the files that it writes."""

LOST_NODE_SECONDS = 10
"""Seconds that pods stay on a node that does not answer, after the 50 s in which the cluster detects this. Kubernetes'
default of 300 s is for programs for which a restart costs more than waiting."""


RELEASE_SECONDS = 90.0
"""Seconds that pods may take to end in addition to their grace period. Within this time the collector terminates those
on lost nodes."""


def container_security() -> Object:
    """Return what the `restricted` Pod Security level requires of a container, and a read-only root file system."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def pod_security() -> Object:
    """Return what the `restricted` Pod Security level requires of a pod."""
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def pull_secrets(training: Training) -> Object:
    """Return the reference of a pod to the pull Secret; empty without a login."""
    return {"imagePullSecrets": [{"name": f"{training.name}-pull"}]} if training.login else {}


def lost_node_tolerations() -> list[Object]:
    """Return the tolerations that limit how long a pod stays on a node that is not ready or does not answer."""
    return [
        {
            "key": f"node.kubernetes.io/{taint}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": LOST_NODE_SECONDS,
        }
        for taint in ("not-ready", "unreachable")
    ]


def pull_secret(training: Training, name: str, labels: Mapping[str, str]) -> list[Object]:
    """Return the pull Secret in the form that the kubelet reads; empty without a login."""
    if not (login := training.login):
        return []
    plain = f"{login.username}:{login.password}".encode()
    entry = {"auth": base64.b64encode(plain).decode()}
    config = {"auths": {login.registry: entry}}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": training.namespace, "labels": dict(labels)},
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": base64.b64encode(json.dumps(config).encode()).decode()},
    }
    return [secret]
