"""What pods in a namespace of trainings have in common."""

from __future__ import annotations

from ..kube.api import Object
from .model import Training

USER = 65532
"""Of the training's image, and of what it writes."""

LOST_NODE_SECONDS = 10
"""How long pods stay on a node that does not answer, after the 50 s that the cluster takes to say so. Kubernetes' own
default of 300 s is for programs that a restart costs more than waiting."""


RELEASE_SECONDS = 90.0
"""What pods may take to end, besides their grace: those on a lost node are ended from outside by then."""


def container_security() -> Object:
    """What the `restricted` Pod Security level asks of a container, and a root file system that cannot be written."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def pod_security() -> Object:
    """What the `restricted` Pod Security level asks of a pod."""
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def pull_secrets(training: Training) -> Object:
    """What a pod says about the login for its images: nothing where there is none."""
    return {"imagePullSecrets": [{"name": f"{training.name}-pull"}]} if training.login else {}


def lost_node_tolerations() -> list[Object]:
    """For how long a pod stays on a node that is not ready or does not answer."""
    return [
        {
            "key": f"node.kubernetes.io/{taint}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": LOST_NODE_SECONDS,
        }
        for taint in ("not-ready", "unreachable")
    ]
