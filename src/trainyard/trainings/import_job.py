"""The Job that imports data onto a claim: the only pod of a run that may reach a server outside the cluster."""

from __future__ import annotations

import urllib.parse

from ..kube.api import Object
from ..kube.apply import content_hash
from .closed import ALWAYS, peers
from .model import Import, Training
from .names import HASH_ANNOTATION, JOB_API, MANAGED, NAME_LABEL
from .objects import dns_egress, of_run, policy
from .pods import container_security, pod_security, pull_secrets
from .template import CODE

EXIT_REFUSED = 2
IMPORT_SECONDS = 6 * 3600
"""Time limit of the whole import, whose server may be slow."""
RETRIES = 3
"""Number of retries. Each continues where the previous one ended."""
MOUNT = "/datasets"
AUTHORITY = "/authority"


def name_of(training: Training) -> str:
    """Return the name of the Job and of its supporting objects."""
    return f"{training.name}-import"


def pod_labels(training: Training) -> dict[str, str]:
    """Return the labels of the Job's pod.

    They are not those of the run's pods, which may not reach what this pod may reach. No run can have such a name.
    """
    return {**MANAGED, NAME_LABEL: f"{training.name}.import"}


def job(training: Training, wanted: Import) -> Object:
    """Return the Job that runs `workloads/data_import` on the training's claim."""
    said = {"url": wanted.url, "sha256": wanted.sha256, "destination": f"{MOUNT}/{training.data_folder}"}
    volumes: list[Object] = [
        {"name": "datasets", "persistentVolumeClaim": {"claimName": training.data_claim}},
        {"name": "code", "image": {"reference": wanted.code, "pullPolicy": training.image_pull_policy}},
    ]
    mounts: list[Object] = [
        {"name": "datasets", "mountPath": MOUNT},
        {"name": "code", "mountPath": CODE, "readOnly": True},
    ]
    env = [{"name": "PYTHONPATH", "value": CODE}]
    if wanted.authority:
        volumes.append({"name": "authority", "configMap": {"name": name_of(training)}})
        mounts.append({"name": "authority", "mountPath": AUTHORITY, "readOnly": True})
        env.append({"name": "SSL_CERT_FILE", "value": f"{AUTHORITY}/ca.crt"})
    container = {
        "name": "import",
        "image": wanted.image,
        "imagePullPolicy": training.image_pull_policy,
        "command": ["/opt/venv/bin/python", "-m", "data_import.main", *(f"--{key}={it}" for key, it in said.items())],
        "env": env,
        "resources": {"limits": {"cpu": "1", "memory": "512Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
        "securityContext": container_security(),
        "volumeMounts": mounts,
    }
    refused = {"containerName": "import", "operator": "In", "values": [EXIT_REFUSED]}
    return {
        "apiVersion": JOB_API,
        "kind": "Job",
        "metadata": {
            "name": name_of(training),
            "namespace": training.namespace,
            "labels": MANAGED,
            "annotations": {HASH_ANNOTATION: content_hash([said, wanted.image, wanted.code])},
        },
        "spec": {
            "backoffLimit": RETRIES,
            "activeDeadlineSeconds": IMPORT_SECONDS,
            # Deletes the Job if the process that waits for it dies first.
            "ttlSecondsAfterFinished": 600,
            "podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": refused}]},
            "template": {
                "metadata": {"labels": pod_labels(training)},
                "spec": {
                    "restartPolicy": "Never",
                    "automountServiceAccountToken": False,
                    "enableServiceLinks": False,
                    **pull_secrets(training),
                    "securityContext": pod_security(),
                    "containers": [container],
                    "volumes": volumes,
                },
            },
        },
    }


def around(training: Training, wanted: Import, closed: tuple[str, ...] = ALWAYS) -> list[Object]:
    """Return the supporting objects of the Job: egress to the server's port only, and its certificate authority.

    :param closed: networks that stay blocked, even if the server's name resolves to one of them.
    :raises TrainyardError: the URL has an address in one of them.
    """
    parts = urllib.parse.urlsplit(wanted.url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    egress = {"to": peers(parts.hostname or "", closed), "ports": [{"port": port, "protocol": "TCP"}]}
    spec = {
        "podSelector": {"matchLabels": pod_labels(training)},
        "policyTypes": ["Egress"],
        "egress": [egress, dns_egress()],
    }
    found = [policy(training, name_of(training), spec)]
    if wanted.authority:
        meta = {"name": name_of(training), "namespace": training.namespace, "labels": of_run(training)}
        found.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"ca.crt": wanted.authority}})
    return found
