"""TensorBoard for a claim with the files of runs: one for each claim, reachable only from the console. Pure data."""

from __future__ import annotations

from ..kube.api import Object
from .model import Training
from .names import MANAGED, TENSORBOARD_LABEL
from .pods import container_security, lost_node_tolerations, pod_security, pull_secret
from .template import logs_claim

PORT = 6006
PROGRAM = "/opt/tensorboard/bin/tensorboard"
CONSOLE_NAMESPACE = "trainyard-console"
RELOAD_SECONDS = 10
"""Interval of reading new events."""


def tensorboard_name(claim: str) -> str:
    """Return the name of the Deployment, the Service and the policy."""
    return f"tensorboard-{claim}"


def path_prefix(namespace: str, claim: str) -> str:
    """Return the path prefix of its pages, at the console and at the Service."""
    return f"/tensorboard/{namespace}/{claim}"


def shown(training: Training) -> list[Object]:
    """Return the objects of the TensorBoard for the claim with the run's files; empty if the training has none.

    Runs that share a claim describe the same objects. These have no run's label and their own pull Secret, because they
    outlive each of the runs.
    """
    if not training.tensorboard:
        return []
    login = pull_secret(training, _pull_secret_name(training), _meta(training)["labels"])
    return [*login, _policy(training), _service(training), _deployment(training)]


def _meta(training: Training) -> Object:
    claim = logs_claim(training)
    labels = {**MANAGED, TENSORBOARD_LABEL: claim}
    return {"name": tensorboard_name(claim), "namespace": training.namespace, "labels": labels}


def _selector(training: Training) -> dict[str, str]:
    return {TENSORBOARD_LABEL: logs_claim(training)}


def _policy(training: Training) -> Object:
    """Return the policy, which allows ingress from the console only, and no egress."""
    console = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": CONSOLE_NAMESPACE}},
        "podSelector": {"matchLabels": {"app.kubernetes.io/name": "console"}},
    }
    spec = {
        "podSelector": {"matchLabels": _selector(training)},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": [console], "ports": [{"port": PORT, "protocol": "TCP"}]}],
    }
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": _meta(training), "spec": spec}


def _service(training: Training) -> Object:
    ports = [{"name": "http", "port": PORT, "targetPort": "http", "protocol": "TCP"}]
    spec = {"selector": _selector(training), "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": _meta(training), "spec": spec}


def _deployment(training: Training) -> Object:
    claim = logs_claim(training)
    prefix = path_prefix(training.namespace, claim)
    container = {
        "name": "tensorboard",
        "image": training.tensorboard,
        "imagePullPolicy": training.image_pull_policy,
        "command": [PROGRAM],
        "args": [
            "--logdir=/logs",
            f"--path_prefix={prefix}",
            "--bind_all",
            f"--port={PORT}",
            f"--reload_interval={RELOAD_SECONDS}",
        ],
        "env": [{"name": "HOME", "value": "/tmp"}],
        "ports": [{"name": "http", "containerPort": PORT, "protocol": "TCP"}],
        "readinessProbe": {"httpGet": {"path": f"{prefix}/", "port": "http"}, "periodSeconds": 5, "timeoutSeconds": 3},
        "resources": {
            "requests": {"cpu": "20m", "memory": "128Mi"},
            "limits": {"cpu": "500m", "memory": "384Mi"},
        },
        "securityContext": container_security(),
        "volumeMounts": [
            {"name": "logs", "mountPath": "/logs", "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }
    pod = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 5,
        **({"imagePullSecrets": [{"name": _pull_secret_name(training)}]} if training.login else {}),
        "securityContext": pod_security(),
        "tolerations": lost_node_tolerations(),
        "containers": [container],
        "volumes": [
            {"name": "logs", "persistentVolumeClaim": {"claimName": claim, "readOnly": True}},
            {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
        ],
    }
    spec = {
        "replicas": 1,
        # A local volume can be used by one pod at a time.
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": _selector(training)},
        "template": {"metadata": {"labels": _selector(training)}, "spec": pod},
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _meta(training), "spec": spec}


def _pull_secret_name(training: Training) -> str:
    return f"{tensorboard_name(logs_claim(training))}-pull"
