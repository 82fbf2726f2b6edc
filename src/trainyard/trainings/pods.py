"""Common settings of the pods in a namespace of trainings."""

from __future__ import annotations

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
