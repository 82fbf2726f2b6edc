"""What stands round a training: its namespace, network policies, logs volume, the stranger that probes them, and the
record of its result. Pure data, no cluster."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from ..kube.api import Object
from .jobset import (
    HASH_ANNOTATION,
    NAME_LABEL,
    container_security,
    hostname,
    logs_claim,
    pod_security,
    pull_secrets,
    spec_hash,
)
from .spec import Training

POLICY_API = "networking.k8s.io/v1"
PROBE_LABEL = "trainyard.dev/probe"
MANAGED = {"app.kubernetes.io/managed-by": "trainyard"}
RESULT_KEY = "result.json"

SYSTEM_NAMESPACE = "trainyard-system"
COLLECTOR = "lost-pod-collector"
"""What ends pods of a run on a node that is gone; roles/workloads/files has it."""

PROBE_PROGRAM = """\
import json, socket, sys, time

def attempt(host, port):
    try:
        address = socket.getaddrinfo(host, int(port), socket.AF_INET, socket.SOCK_STREAM)[0][4]
    except OSError as error:
        return "unresolved", str(error)
    try:
        socket.create_connection(address, 1.0).close()
    except TimeoutError:
        return "timeout", address[0]
    except OSError as error:
        return "refused", str(error)
    return "connected", address[0]

end = time.time() + float(sys.argv[1])
while time.time() < end:
    for name, host, port in (each.split(",") for each in sys.argv[2:]):
        begin = time.time()
        outcome, detail = attempt(host, port)
        seen = {"target": name, "outcome": outcome, "detail": detail, "begin": begin, "end": time.time()}
        print(json.dumps(seen), flush=True)
    time.sleep(0.2)
"""
"""Tries both addresses again and again: `target` is the training's port, `control` one that must answer."""


TARGET_PROGRAM = """\
import json, socket, sys, time

server = socket.create_server(("", int(sys.argv[1])))
server.settimeout(0.2)
end = time.time() + float(sys.argv[2])
while time.time() < end:
    print(json.dumps({"event": "connected", "time": time.time()}), flush=True)
    try:
        server.accept()[0].close()
    except TimeoutError:
        pass
"""
"""Listens in the place of a ps, and says so again and again."""


def namespace(training: Training) -> Object:
    """The namespace, which refuses pods below the `restricted` level and says that runs are in it."""
    levels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": training.namespace, "labels": {**MANAGED, **levels, "trainyard.dev/trainings": "true"}},
    }


def collector_binding(training: Training) -> Object:
    """Lets the collector end pods in this namespace."""
    api = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{api}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": COLLECTOR, "namespace": training.namespace, "labels": MANAGED},
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": "trainyard:ends-lost-pods"},
        "subjects": [{"kind": "ServiceAccount", "name": COLLECTOR, "namespace": SYSTEM_NAMESPACE}],
    }


def _policy(training: Training, name: str, spec: Object) -> Object:
    meta = {"name": name, "namespace": training.namespace, "labels": MANAGED}
    return {"apiVersion": POLICY_API, "kind": "NetworkPolicy", "metadata": meta, "spec": spec}


def network_policies(training: Training) -> list[Object]:
    """Nothing passes in the namespace, except between the pods of one run on its ports, and to the cluster's DNS."""
    own = {"matchLabels": {NAME_LABEL: training.name}}
    ports = [{"port": port, "protocol": "TCP"} for port in training.ports]
    dns = {
        "to": [
            {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
                "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
            }
        ],
        "ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}],
    }
    return [
        _policy(training, "default-deny", {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}),
        _policy(
            training,
            training.name,
            {
                "podSelector": own,
                "policyTypes": ["Ingress", "Egress"],
                "ingress": [{"from": [{"podSelector": own}], "ports": ports}],
                "egress": [{"to": [{"podSelector": own}], "ports": ports}, dns],
            },
        ),
    ]


def logs_volume(training: Training) -> str:
    """Name of the local volume with the chief's files."""
    return f"{training.namespace}-{logs_claim(training)}"


def node_of(volume: Object) -> str:
    """The node that a local volume is on."""
    term = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]
    return str(term["matchExpressions"][0]["values"][0])


def volume(training: Training) -> list[Object]:
    """The run's own claim, and the local volume behind it where a node and a path are given. Nothing where the run has
    a folder on a shared claim."""
    logs = training.logs
    if logs.claim:
        return []
    claim_name, volume_name = logs_claim(training), logs_volume(training)
    spec: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": logs.size}}}
    if logs.path:
        # An empty class keeps a default class from making a second volume.
        spec |= {"storageClassName": "", "volumeName": volume_name}
    elif logs.storage_class:
        spec["storageClassName"] = logs.storage_class
    claim: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim_name, "namespace": training.namespace, "labels": MANAGED},
        "spec": spec,
    }
    if not logs.path:
        return [claim]
    on_node = {"key": "kubernetes.io/hostname", "operator": "In", "values": [logs.node]}
    local: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": volume_name, "labels": MANAGED},
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


def pull_secret(training: Training) -> list[Object]:
    """The login for the images, as the kubelet reads it; nothing where there is none."""
    if not (login := training.login):
        return []
    plain = f"{login.username}:{login.password}".encode()
    entry = {"auth": base64.b64encode(plain).decode()}
    images = filter(None, (training.image, training.data_image))
    config = {"auths": {image.partition("/")[0]: entry for image in images}}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{training.name}-pull", "namespace": training.namespace, "labels": MANAGED},
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": base64.b64encode(json.dumps(config).encode()).decode()},
    }
    return [secret]


def surroundings(training: Training) -> list[Object]:
    """Everything that has to stand before the run is submitted, in order."""
    shared = [namespace(training), collector_binding(training)]
    return [*shared, *network_policies(training), *pull_secret(training), *volume(training)]


def probe_name(training: Training) -> str:
    return f"{training.name}-stranger"


def probe(training: Training, control: str, *, seconds: int, target: str = "") -> list[Object]:
    """A pod of the same image that is not of the run, and may send anywhere: what stops it is the run's own policy.

    :param control: `host,port` that must answer it, to show that its network works.
    :param seconds: how long it goes on trying.
    :param target: host that it tries on the training's port; the run's first ps when empty.
    """
    name = probe_name(training)
    where = f"{target or hostname(training, 'ps', 0)},{training.port}"
    arguments = [str(seconds), f"target,{where}", f"control,{control}"]
    labels = {PROBE_LABEL: training.name}
    policy = _policy(
        training, name, {"podSelector": {"matchLabels": labels}, "policyTypes": ["Egress"], "egress": [{}]}
    )
    return [policy, _small_pod(training, name, labels, PROBE_PROGRAM, arguments, seconds)]


def target_name(training: Training) -> str:
    return f"{training.name}-target"


def target(training: Training, *, seconds: int) -> Object:
    """A pod with the run's labels that listens on its port: what a run that has ended leaves to be probed."""
    labels = {NAME_LABEL: training.name}
    return _small_pod(
        training, target_name(training), labels, TARGET_PROGRAM, [str(training.port), str(seconds)], seconds
    )


def _small_pod(
    training: Training, name: str, labels: Object, program: str, arguments: list[str], seconds: int
) -> Object:
    """A pod that runs one of the programs above with the Python of the training's image."""
    container = {
        "name": "probe",
        "image": training.image,
        "imagePullPolicy": training.image_pull_policy,
        "command": [training.command[0], "-c", program],
        "args": arguments,
        "resources": {
            "limits": {"cpu": "500m", "memory": "64Mi"},
            "requests": {"cpu": "50m", "memory": "64Mi"},
        },
        "securityContext": container_security(),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": training.namespace, "labels": {**MANAGED, **labels}},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 0,
            "activeDeadlineSeconds": seconds + 60,
            **pull_secrets(training),
            "securityContext": pod_security(),
            "containers": [container],
        },
    }


def result_name(run: str) -> str:
    """Name of the ConfigMap with the result of a run."""
    return f"{run}-result"


def result_record(training: Training, result: Mapping[str, Any]) -> Object:
    """A ConfigMap that remembers the result of a successful run, by the hash of what was run."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": result_name(training.name),
            "namespace": training.namespace,
            "labels": MANAGED,
            "annotations": {HASH_ANNOTATION: spec_hash(training)},
        },
        "data": {RESULT_KEY: json.dumps(result, indent=2, sort_keys=True)},
    }
