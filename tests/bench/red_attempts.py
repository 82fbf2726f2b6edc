"""Requests that must be refused to an operator of one namespace, as data; sent with the operator's token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stand import NAMESPACE

OTHER = "trainings-other"
"""A namespace with the runs of other users."""
CLAIM = "training"
"""A claim there, whose TensorBoard the operator tries to see."""
POLICY, RIGHTS = "the admission policies of the console", "the rights of the console's levels"
"""Guards, by the names under which the part switches them off."""
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
NONE = "0" * 64
ANOTHER = {"metadata": {"labels": {"trainyard.dev/run": "mnist-ps"}}}
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"


@dataclass(frozen=True)
class Attempt:
    """One request.

    :param said: part of the refusal, which names the guard.
    """

    name: str
    guard: str
    said: str
    method: str
    path: str
    body: Any = None
    content: str = "application/json"


@dataclass(frozen=True)
class There:
    """Existing objects of the cluster.

    :param image: image of a run, by digest.
    :param record: name of a ConfigMap that is the record of one of the operator's runs.
    """

    image: str
    record: str

    @property
    def registry(self) -> str:
        """Return the registry of the site's images."""
        return self.image.partition("@")[0].rpartition("/")[0]


def pod(there: There, **spec: Any) -> dict[str, Any]:
    """Return a pod that the rules of the namespace accept, with changes."""
    container = {
        "name": "tensorflow",
        "image": there.image,
        "command": ["true"],
        "resources": {"limits": {"cpu": "500m", "memory": "128Mi"}, "requests": {"cpu": "50m", "memory": "64Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        **spec.pop("container", {}),
    }
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 2,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        **spec,
    }


def job(
    name: str,
    spec: Mapping[str, Any],
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    namespace: str = NAMESPACE,
) -> dict[str, Any]:
    """Return a Job in the project's form.

    :param labels: labels of its pods, in addition to those of a run.
    """
    run = {"trainyard.dev/run": name, "trainyard.dev/role": "worker"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": "trainyard", "trainyard.dev/run": name},
            "annotations": {"trainyard.dev/deciding": "worker-0", **(annotations or {})},
        },
        "spec": {
            "completionMode": "Indexed",
            "completions": 1,
            "parallelism": 1,
            "backoffLimit": 0,
            "template": {"metadata": {"labels": {**run, **(labels or {})}}, "spec": dict(spec)},
        },
    }


def of_pods(there: There) -> list[Attempt]:
    """Return Jobs whose pods would exceed the operator's rights."""
    jobs = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"

    def one(name: str, said: str, labels: Mapping[str, str] | None = None, **spec: Any) -> Attempt:
        return Attempt(name, POLICY, said, "POST", jobs, job("red-refused", pod(there, **spec), labels))

    code = {"name": "code", "image": {"reference": f"docker.example.org/code@sha256:{NONE}"}}
    foreign = job("red-refused", pod(there))
    foreign["metadata"]["labels"] = {}
    longer = f"{there.registry}.example.org/x@sha256:{NONE}"
    everywhere = {"operator": "Exists"}
    control = {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}
    first = {**pod(there)["containers"][0], "name": "first", "image": "busybox"}
    return [
        one("priority system-node-critical", "Priority classes", priorityClassName="system-node-critical"),
        one("priority system-cluster-critical", "Priority classes", priorityClassName="system-cluster-critical"),
        one("toleration of the control plane", "taint of the control plane", tolerations=[control]),
        one("toleration of every taint", "tolerates every taint", tolerations=[everywhere]),
        one("a node by its name", "names its node", nodeName="cp1"),
        one("grace of 10^9 seconds", "at most 3600", terminationGracePeriodSeconds=10**9),
        one("an image by tag", "named by digest", container={"image": f"{there.registry}/tensorflow:latest"}),
        one("an image of elsewhere", "come from", container={"image": f"docker.example.org/x@sha256:{NONE}"}),
        one("an image of a registry with a longer name", "come from", container={"image": longer}),
        one("a foreign image that begins", "named by digest", initContainers=[first]),
        one("code of elsewhere as a volume", "come from", volumes=[code]),
        one("the label of a TensorBoard", "are for pods of the project", {"trainyard.dev/tensorboard": CLAIM}),
        one("the label of a probe", "are for pods of the project", {"trainyard.dev/probe": "red-refused"}),
        one("the label of another run", "the name of its own run", {"trainyard.dev/run": "mnist-ps"}),
        one("the label of an import", "of its own run|for pods of the project", {"trainyard.dev/run": "x.import"}),
        Attempt("a Job that never ends", POLICY, "Set activeDeadlineSeconds", "POST", jobs, foreign),
    ]


def of_records(there: There) -> list[Attempt]:
    """Return changes of ConfigMaps that are not results of a run."""
    maps = f"/api/v1/namespaces/{NAMESPACE}/configmaps"

    def one(name: str, said: str, target: str, body: Any) -> Attempt:
        return Attempt(name, POLICY, said, "PATCH", f"{maps}/{target}", body, MERGE)

    return [
        one("code in a record", "nothing but result.json", there.record, {"data": {"code.py": "print()"}}),
        one("another run in a record", "keeps its labels", there.record, ANOTHER),
        one("the cluster's authority", "records of runs", "kube-root-ca.crt", {"data": {"ca.crt": "mine"}}),
    ]


def of_rights(there: There) -> list[Attempt]:
    """Return requests for rights that no level has."""

    def one(name: str, method: str, path: str, body: Any = None, content: str = "application/json") -> Attempt:
        return Attempt(name, RIGHTS, "cannot|forbidden", method, path, body, content)

    here, there_ = f"/api/v1/namespaces/{NAMESPACE}", f"/api/v1/namespaces/{OTHER}"
    console = "/api/v1/namespaces/trainyard-console/services/https:console:8443/proxy/healthz"
    wanted = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": f"{OTHER}-red-record-logs"}
    wanted["resources"] = {"requests": {"storage": "1Gi"}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "red"}, "spec": wanted}
    role = {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": "rbac.authorization.k8s.io"}
    me = {"kind": "ServiceAccount", "name": "user-alice", "namespace": "trainyard-console"}
    version = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding"}
    binding = {**version, "metadata": {"name": "red"}, "roleRef": role, "subjects": [me]}
    return [
        one("services/proxy to the console", "GET", console),
        one("services/proxy to another TensorBoard", "GET", f"{there_}/services/tensorboard-{CLAIM}:6006/proxy/"),
        one("Secrets of his namespace", "GET", f"{here}/secrets"),
        one("Secrets of the console", "GET", "/api/v1/namespaces/trainyard-console/secrets"),
        one(
            "a Job elsewhere", "POST", f"/apis/batch/v1/namespaces/{OTHER}/jobs", job("x", pod(there), None, {}, OTHER)
        ),
        one(
            "a record elsewhere", "PATCH", f"{there_}/configmaps/{there.record}", {"data": {"result.json": "{}"}}, MERGE
        ),
        one("a volume of another namespace", "DELETE", f"/api/v1/persistentvolumes/{OTHER}-red-record-logs"),
        one("a claim on that volume", "POST", f"{here}/persistentvolumeclaims", claim),
        one("cluster-admin for himself", "POST", f"{RBAC}/clusterrolebindings", binding),
        one("a policy less", "DELETE", f"{ADMISSION}/validatingadmissionpolicybindings/trainyard-console-pods"),
        one("a label of a node", "PATCH", "/api/v1/nodes/worker1", {"metadata": {"labels": {"red": "1"}}}, STRATEGIC),
    ]


def attempts(there: There) -> list[Attempt]:
    return [*of_pods(there), *of_records(there), *of_rights(there)]
