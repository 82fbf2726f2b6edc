"""Rights and pods that Kubernetes 1.36 and kubeadm 1.36 make by themselves, as their sources have them.

A name alone is no proof: a binding counts only with its role and its subjects, a role only with the powers it has here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..kube.api import Object, describe
from .rights import EVERYTHING, SYSTEM, referred, subjects_of

KUBELETS = "reach kubelets"
SECRETS = "read all Secrets"
TOKENS = "make tokens of ServiceAccounts"
PODS = f"run pods in {SYSTEM}"
CERTIFICATES = "approve or sign certificates"
WILDCARDS = "do what wildcards cover"
RIGHTS = "write rights"
EDITS = ("impersonate", SECRETS, TOKENS, PODS)
COLLECTS = (
    RIGHTS,
    "write webhooks and admission policies",
    "register APIs",
    CERTIFICATES,
    KUBELETS,
    SECRETS,
    PODS,
    WILDCARDS,
)
CONTROLLER = "system:controller:"

ROLES: Mapping[str, Sequence[str]] = {
    "ClusterRole cluster-admin": (EVERYTHING,),
    "ClusterRole admin": (RIGHTS, *EDITS),
    "ClusterRole edit": EDITS,
    "ClusterRole system:kube-controller-manager": (SECRETS, TOKENS, WILDCARDS),
    "ClusterRole system:kubelet-api-admin": (KUBELETS, WILDCARDS),
    f"ClusterRole {CONTROLLER}certificate-controller": (CERTIFICATES,),
    f"ClusterRole {CONTROLLER}clusterrole-aggregation-controller": ("escalate", RIGHTS),
    f"ClusterRole {CONTROLLER}cronjob-controller": (PODS,),
    f"ClusterRole {CONTROLLER}daemon-set-controller": (PODS,),
    f"ClusterRole {CONTROLLER}deployment-controller": (PODS,),
    f"ClusterRole {CONTROLLER}disruption-controller": (WILDCARDS,),
    f"ClusterRole {CONTROLLER}generic-garbage-collector": COLLECTS,
    f"ClusterRole {CONTROLLER}horizontal-pod-autoscaler": (WILDCARDS,),
    f"ClusterRole {CONTROLLER}job-controller": (PODS,),
    f"ClusterRole {CONTROLLER}namespace-controller": (KUBELETS, SECRETS, WILDCARDS),
    f"ClusterRole {CONTROLLER}persistent-volume-binder": (PODS,),
    f"ClusterRole {CONTROLLER}replicaset-controller": (PODS,),
    f"ClusterRole {CONTROLLER}replication-controller": (PODS,),
    f"ClusterRole {CONTROLLER}resourcequota-controller": (SECRETS, WILDCARDS),
    f"ClusterRole {CONTROLLER}statefulset-controller": (PODS,),
    f"Role {SYSTEM}/{CONTROLLER}bootstrap-signer": (SECRETS,),
    f"Role {SYSTEM}/{CONTROLLER}token-cleaner": (SECRETS,),
}
"""Role -> the powers that it has (bootstrappolicy of the API server); the others have none."""


@dataclass(frozen=True)
class Bound:
    """A binding that gives powers, and is not of the form that those of the controllers have."""

    role: str
    subject: str


BINDINGS: Mapping[str, Bound] = {
    "ClusterRoleBinding cluster-admin": Bound("ClusterRole cluster-admin", "Group system:masters"),
    "ClusterRoleBinding system:kube-controller-manager": Bound(
        "ClusterRole system:kube-controller-manager", "User system:kube-controller-manager"
    ),
    "ClusterRoleBinding kubeadm:cluster-admins": Bound("ClusterRole cluster-admin", "Group kubeadm:cluster-admins"),
    "ClusterRoleBinding kubeadm:apiserver-kubelet-client": Bound(
        "ClusterRole system:kubelet-api-admin", "User kube-apiserver-kubelet-client"
    ),
}

STATIC_PODS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
"""kubeadm's, on each node of the control plane; their names end with that of the node."""
MIRROR = "kubernetes.io/config.mirror"
"""Annotation of the API's image of a static pod. No kubelet runs a pod that has it, unless its own files say so."""


def makes(binding: Object) -> bool:
    """Whether Kubernetes or kubeadm makes this binding, with this role and for these subjects alone."""
    role, subjects = referred(binding), subjects_of(binding)
    known = BINDINGS.get(describe(binding))
    if known:
        return role == known.role and subjects == [known.subject]
    name = str(binding["metadata"]["name"])
    kind = "Role" if binding.get("kind") == "RoleBinding" else "ClusterRole"
    place = f"{SYSTEM}/" if kind == "Role" else ""
    return (
        name.startswith(CONTROLLER)
        and role == f"{kind} {place}{name}"
        and subjects == [f"ServiceAccount {SYSTEM}/{name.removeprefix(CONTROLLER)}"]
    )


def is_static(pod: Object, control_plane: Sequence[str]) -> bool:
    """Whether a pod is the image of one that kubeadm has its node run.

    :param control_plane: names of the nodes of the control plane.
    """
    meta = pod["metadata"]
    names = {f"{each}-{node}" for each in STATIC_PODS for node in control_plane}
    return meta.get("namespace") == SYSTEM and meta["name"] in names and MIRROR in (meta.get("annotations") or {})
