"""Rights and pods that Kubernetes 1.36 and kubeadm 1.36 create by themselves, from their source code.

A name alone proves nothing. A binding counts only with its role and subjects, a role only with the powers listed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..core.untrusted import at
from ..kube.api import Object
from .rights import EVERYTHING, SYSTEM, Key, key_of, referred, subjects_of

KUBELETS = "reach kubelets"
SECRETS = "read all Secrets"
TOKENS = "make tokens of ServiceAccounts"
PODS = f"run pods in {SYSTEM}"
CERTIFICATES = "approve or sign certificates"
REACH = "reach into pods"
WEAKEN = "weaken admission policies"
VOLUMES = "make PersistentVolumes"
NAMED = "read single Secrets of the system"
WILDCARDS = "do what wildcards cover"
RIGHTS = "write rights"
EDITS = ("impersonate", SECRETS, TOKENS, PODS, REACH)
COLLECTS = (
    RIGHTS,
    "write webhooks and admission policies",
    "register APIs",
    CERTIFICATES,
    KUBELETS,
    SECRETS,
    PODS,
    WEAKEN,
    REACH,
    WILDCARDS,
)
CONTROLLER = "system:controller:"
CERTS = "kubeadm:kubeadm-certs"
"""A Role and its binding, with which a joining control plane host reads the shared certificates (kubeadm, copycerts).
They are encrypted, and their Secret expires after two hours."""
JOINING = ("Group", "", "system:bootstrappers:kubeadm:default-node-token")

CLUSTER_ROLES: Mapping[str, Sequence[str]] = {
    "cluster-admin": (EVERYTHING,),
    "admin": (RIGHTS, *EDITS),
    "edit": EDITS,
    "system:kube-controller-manager": (SECRETS, TOKENS, WILDCARDS),
    "system:kubelet-api-admin": (KUBELETS, WILDCARDS),
    f"{CONTROLLER}certificate-controller": (CERTIFICATES,),
    f"{CONTROLLER}clusterrole-aggregation-controller": ("escalate", RIGHTS),
    f"{CONTROLLER}cronjob-controller": (PODS,),
    f"{CONTROLLER}daemon-set-controller": (PODS,),
    f"{CONTROLLER}deployment-controller": (PODS,),
    f"{CONTROLLER}disruption-controller": (WILDCARDS,),
    f"{CONTROLLER}generic-garbage-collector": COLLECTS,
    f"{CONTROLLER}horizontal-pod-autoscaler": (WILDCARDS,),
    f"{CONTROLLER}job-controller": (PODS,),
    f"{CONTROLLER}namespace-controller": (WEAKEN, KUBELETS, SECRETS, REACH, WILDCARDS),
    f"{CONTROLLER}persistent-volume-binder": (PODS, VOLUMES),
    f"{CONTROLLER}replicaset-controller": (PODS,),
    f"{CONTROLLER}replication-controller": (PODS,),
    f"{CONTROLLER}resourcequota-controller": (SECRETS, WILDCARDS),
    f"{CONTROLLER}statefulset-controller": (PODS,),
}
SYSTEM_ROLES: Mapping[str, Sequence[str]] = {
    f"{CONTROLLER}bootstrap-signer": (SECRETS,),
    f"{CONTROLLER}token-cleaner": (SECRETS,),
    CERTS: (NAMED,),
}
ROLES: Mapping[Key, Sequence[str]] = {
    **{("ClusterRole", "", name): powers for name, powers in CLUSTER_ROLES.items()},
    **{("Role", SYSTEM, name): powers for name, powers in SYSTEM_ROLES.items()},
}
"""Role -> its powers (bootstrappolicy of the API server). Other roles have none."""


@dataclass(frozen=True)
class Bound:
    """A ClusterRoleBinding with powers that does not have the form of the controllers' bindings.

    :param role: name of the ClusterRole.
    :param kind: kind of the only subject; `subject` is its name.
    """

    role: str
    kind: str
    subject: str


BINDINGS: Mapping[str, Bound] = {
    "cluster-admin": Bound("cluster-admin", "Group", "system:masters"),
    "system:kube-controller-manager": Bound("system:kube-controller-manager", "User", "system:kube-controller-manager"),
    "kubeadm:cluster-admins": Bound("cluster-admin", "Group", "kubeadm:cluster-admins"),
    "kubeadm:apiserver-kubelet-client": Bound("system:kubelet-api-admin", "User", "kube-apiserver-kubelet-client"),
}

STATIC_PODS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
"""Static pods of kubeadm on each node of the control plane; their names end with the name of the node."""
MIRROR = "kubernetes.io/config.mirror"
"""Annotation of a mirror pod. A kubelet runs a pod with it only from its own static files."""


def makes(binding: Object) -> bool:
    """Return whether Kubernetes or kubeadm creates this binding with exactly this role and these subjects."""
    cluster, name = binding.get("kind") == "ClusterRoleBinding", str(at(binding, "metadata", "name"))
    given = referred(binding), subjects_of(binding)
    known = BINDINGS.get(name) if cluster else None
    if known:
        return given == (("ClusterRole", "", known.role), [(known.kind, "", known.subject)])
    role = key_of("ClusterRole", name) if cluster else key_of("Role", name, SYSTEM)
    if name == CERTS:
        return not cluster and given == (role, [JOINING])
    account = ("ServiceAccount", SYSTEM, name.removeprefix(CONTROLLER))
    return name.startswith(CONTROLLER) and given == (role, [account])


def is_static(pod: Object, control_plane: Sequence[str]) -> bool:
    """Return whether a pod is the mirror pod of a static pod of kubeadm.

    :param control_plane: names of the nodes of the control plane.
    """
    meta = pod["metadata"]
    names = {f"{each}-{node}" for each in STATIC_PODS for node in control_plane}
    return meta.get("namespace") == SYSTEM and meta["name"] in names and MIRROR in (meta.get("annotations") or {})
