"""Supporting objects of a training: namespace, network policies, volumes, and the record of its result.

Pure data, no cluster.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..kube.api import Object
from .jobset import spec_hash
from .model import Training
from .names import (
    ATTEMPT_ANNOTATION,
    HASH_ANNOTATION,
    MANAGED,
    NAME_LABEL,
    PROGRAM_ANNOTATION,
    RESULT_KEY,
    WORKLOAD_ANNOTATION,
    result_name,
)
from .pods import pull_secret
from .template import logs_claim, pod_labels, volume_claim
from .tensorboard import shown

POLICY_API = "networking.k8s.io/v1"
DEFAULT_DENY = "default-deny"
"""Policy of the namespace, shared by all its runs."""

SYSTEM_NAMESPACE = "trainyard-system"
COLLECTOR = "lost-pod-collector"
"""Controller that terminates a run's pods on lost nodes; it is in roles/workloads/files."""


def namespace(training: Training) -> Object:
    """Return the namespace, which enforces the `restricted` Pod Security level and is labelled as one with runs."""
    levels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": training.namespace, "labels": {**MANAGED, **levels, "trainyard.dev/trainings": "true"}},
    }


def collector_binding(training: Training) -> Object:
    """Return the RoleBinding that lets the collector terminate pods in this namespace."""
    api = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{api}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": COLLECTOR, "namespace": training.namespace, "labels": MANAGED},
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": "trainyard:ends-lost-pods"},
        "subjects": [{"kind": "ServiceAccount", "name": COLLECTOR, "namespace": SYSTEM_NAMESPACE}],
    }


def policy(training: Training, name: str, spec: Object) -> Object:
    labels = MANAGED if name == DEFAULT_DENY else of_run(training)
    meta = {"name": name, "namespace": training.namespace, "labels": labels}
    return {"apiVersion": POLICY_API, "kind": "NetworkPolicy", "metadata": meta, "spec": spec}


def of_run(training: Training) -> dict[str, str]:
    """Return the labels of the run's own objects, by which they are found and deleted with it."""
    return {**MANAGED, NAME_LABEL: training.name}


def dns_egress() -> Object:
    """Return the egress rule that allows queries to the cluster's DNS."""
    return {
        "to": [
            {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
                "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
            }
        ],
        "ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}],
    }


def network_policies(training: Training) -> list[Object]:
    """Return the policies that block all traffic except between the pods of a run, and to DNS.

    NCCL, gloo and MPI listen on random ports, so the pods of a run reach each other on all of them.
    """
    own = {"matchLabels": {NAME_LABEL: training.name}}
    between = [{"podSelector": own}] if training.ports else []
    return [
        policy(training, DEFAULT_DENY, {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}),
        policy(
            training,
            training.name,
            {
                "podSelector": own,
                "policyTypes": ["Ingress", "Egress"],
                "ingress": [{"from": between}] if between else [],
                "egress": [*([{"to": between}] if between else []), dns_egress()],
            },
        ),
    ]


def logs_volume(training: Training) -> str:
    """Return the name of the local volume with the chief's files."""
    return f"{training.namespace}-{logs_claim(training)}"


def node_of(volume: Object) -> str:
    """Return the node of a local volume."""
    term = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]
    return str(term["matchExpressions"][0]["values"][0])


def volume(training: Training) -> list[Object]:
    """Return the run's own claim, and its local volume if a node and a path are given.

    A run with a folder on a shared claim needs neither.
    """
    logs = training.logs
    if logs.claim:
        return []
    claim_name, volume_name = logs_claim(training), logs_volume(training)
    spec: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": logs.size}}}
    if logs.path:
        # An empty class prevents a default class from provisioning a second volume.
        spec |= {"storageClassName": "", "volumeName": volume_name}
    elif logs.storage_class:
        spec["storageClassName"] = logs.storage_class
    claim: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim_name, "namespace": training.namespace, "labels": of_run(training)},
        "spec": spec,
    }
    if not logs.path:
        return [claim]
    on_node = {"key": "kubernetes.io/hostname", "operator": "In", "values": [logs.node]}
    local: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": volume_name, "labels": of_run(training)},
        "spec": {
            "capacity": {"storage": logs.size},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "volumeMode": "Filesystem",
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "name": claim_name,
                "namespace": training.namespace,
            },
            "local": {"path": logs.path},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_node]}]}},
        },
    }
    return [local, claim]


def node_folders(training: Training) -> list[Object]:
    """Return volumes and claims for node folders that roles mount.

    Pods at the `restricted` level may not mount a folder of their node directly.
    """
    folders = {each.name: each for role in training.roles.values() for each in role.volumes if each.path}
    found: list[Object] = []
    for folder in folders.values():
        name = volume_claim(training, folder)
        size = {"storage": "1Gi"}  # required by the API; a folder does not enforce it
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": name, "namespace": training.namespace}
        common = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
        volume_name = f"{training.namespace}-{name}"
        found += [
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": volume_name, "labels": of_run(training)},
                "spec": {
                    **common,
                    "capacity": size,
                    "persistentVolumeReclaimPolicy": "Retain",
                    "volumeMode": "Filesystem",
                    "claimRef": claim,
                    "hostPath": {"path": folder.path, "type": "Directory"},
                },
            },
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": name, "namespace": training.namespace, "labels": of_run(training)},
                "spec": {**common, "volumeName": volume_name, "resources": {"requests": size}},
            },
        ]
    return found


def front(training: Training) -> list[Object]:
    """Return the Service of a service, by which `kubectl port-forward` finds its pod.

    No policy allows other clients.
    """
    if training.shape.back_end != "Deployment":
        return []
    role = training.decider
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": training.name, "namespace": training.namespace, "labels": of_run(training)},
            "spec": {
                "selector": pod_labels(training, role.name),
                "ports": [{"name": "http", "port": role.port, "targetPort": role.port, "protocol": "TCP"}],
            },
        }
    ]


def surroundings(training: Training) -> list[Object]:
    """Return all objects that must exist before the run is submitted, in order."""
    shared = [namespace(training), collector_binding(training)]
    login = pull_secret(training, f"{training.name}-pull", of_run(training))
    around = [*network_policies(training), *login, *volume(training), *node_folders(training)]
    return [*shared, *around, *front(training), *shown(training)]


def result_record(training: Training, result: Mapping[str, Any]) -> Object:
    """Return the ConfigMap that records the result of a run with the hash of the run."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": result_name(training.name),
            "namespace": training.namespace,
            "labels": of_run(training),
            "annotations": {
                HASH_ANNOTATION: spec_hash(training),
                ATTEMPT_ANNOTATION: str(result.get("attempt", "")),
                WORKLOAD_ANNOTATION: training.workload,
                **({PROGRAM_ANNOTATION: training.program} if training.program else {}),
            },
        },
        "data": {RESULT_KEY: json.dumps(result, indent=2, sort_keys=True)},
    }
