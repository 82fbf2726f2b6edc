"""The Secret with which the nodes pull the images of a training."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

from ..kube.api import Object
from .model import Training


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
