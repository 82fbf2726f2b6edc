"""The pod that deletes the files of a run."""

from __future__ import annotations

from collections.abc import Mapping

from ..kube.api import Object
from .found import Found
from .names import MANAGED
from .pods import container_security, pod_security

DELETE_SECONDS = 300.0


def cleaner(found: Found, files: Mapping[str, str]) -> Object:
    """Return the pod that deletes a run's folder, or the contents of its own claim.

    :param files: `claim`, `folder`, `image` and `image_pull_policy` of a record.
    """
    folder = files["folder"]
    own = folder == "/logs"
    command = ["find", "/logs", "-mindepth", "1", "-delete"] if own else ["rm", "-rf", "--", folder]
    container = {
        "name": "cleaner",
        "image": files["image"],
        "imagePullPolicy": files.get("image_pull_policy", "IfNotPresent"),
        "command": command,
        "resources": {"limits": {"cpu": "500m", "memory": "64Mi"}, "requests": {"cpu": "50m", "memory": "64Mi"}},
        "securityContext": container_security(),
        "volumeMounts": [{"name": "logs", "mountPath": "/logs"}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{found.name}-cleaner", "namespace": found.namespace, "labels": dict(MANAGED)},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "activeDeadlineSeconds": int(DELETE_SECONDS),
            "imagePullSecrets": [{"name": f"{found.name}-pull"}],
            "securityContext": pod_security(),
            "containers": [container],
            "volumes": [{"name": "logs", "persistentVolumeClaim": {"claimName": files["claim"]}}],
        },
    }
