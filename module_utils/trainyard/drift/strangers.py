"""Rights and doors that nobody here has made: bindings to cluster-admin, ports on nodes, pods with rights on a node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.finding import Finding
from ..kube.api import FIELD_MANAGER, Object, describe

ADMIN = "cluster-admin"
OF_KUBERNETES: Mapping[str, Sequence[str]] = {
    ADMIN: ("Group system:masters",),
    "kubeadm:cluster-admins": ("Group kubeadm:cluster-admins",),
}
"""Bindings to it that every cluster of kubeadm has -> their subjects."""

STATIC_PODS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
NOBODYS = "not the site's"


def is_ours(obj: Object) -> bool:
    """Whether a run has applied the object, as the API server remembers."""
    return any(entry.get("manager") == FIELD_MANAGER for entry in obj["metadata"].get("managedFields") or [])


def binding_findings(bindings: Sequence[Object]) -> Iterator[Finding]:
    """Whoever may do everything and has it neither from kubeadm nor from a role.

    :param bindings: ClusterRoleBinding and RoleBinding objects.
    """
    for binding in bindings:
        role = binding.get("roleRef") or {}
        if (role.get("kind"), role.get("name")) != ("ClusterRole", ADMIN) or is_ours(binding):
            continue
        subjects = sorted(map(_subject, binding.get("subjects") or []))
        known = OF_KUBERNETES.get(str(binding["metadata"]["name"])) if binding["kind"] == "ClusterRoleBinding" else None
        if known is None or subjects != sorted(known):
            after = ", ".join(known) if known else NOBODYS
            yield Finding(describe(binding), f"{ADMIN} for {', '.join(subjects) or 'nobody'}", after)


def _subject(subject: Mapping[str, Any]) -> str:
    place = f"{subject['namespace']}/" if subject.get("namespace") else ""
    return f"{subject.get('kind')} {place}{subject.get('name')}"


def service_findings(services: Sequence[Object]) -> Iterator[Finding]:
    """Services that open a port on every node or take an address, and that no role has made."""
    for service in services:
        spec = service.get("spec") or {}
        ports = [str(port["nodePort"]) for port in spec.get("ports") or [] if port.get("nodePort")]
        opens = [f"{spec.get('type')} {', '.join(ports)}"] if ports else []
        opens += [f"address {each}" for each in spec.get("externalIPs") or []]
        if opens and not is_ours(service):
            yield Finding(describe(service), "; ".join(opens), NOBODYS)


def pod_findings(pods: Sequence[Object], owners: Sequence[Object], control_plane: Sequence[str]) -> Iterator[Finding]:
    """Pods with rights on their node that come neither from kubeadm nor from what a role has applied.

    :param pods: of the system's namespaces.
    :param owners: Deployments, ReplicaSets, DaemonSets, StatefulSets and Jobs.
    :param control_plane: nodes on which kubeadm runs static pods.
    """
    by_uid = {str(each["metadata"].get("uid")): each for each in owners}
    static = {f"{pod}-{node}" for pod in STATIC_PODS for node in control_plane}
    told: set[str] = set()
    for pod in pods:
        rights = node_rights(pod.get("spec") or {})
        ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if not rights or ended or pod["metadata"].get("deletionTimestamp"):
            continue
        top = _top(pod, by_uid)
        made_by_kubelet = top.startswith("Node ")
        if is_ours(by_uid.get(top, pod)) or (made_by_kubelet and pod["metadata"]["name"] in static):
            continue
        # Pods of one owner are one finding, whose name outlives them.
        subject = describe(pod) if made_by_kubelet else _name_of(top, by_uid, pod)
        if subject not in told:
            told.add(subject)
            yield Finding(subject, ", ".join(rights), NOBODYS)


def node_rights(spec: Mapping[str, Any]) -> list[str]:
    """What a pod may do on its node, in words; empty for an ordinary one."""
    shared = {"hostPID": "sees its processes", "hostIPC": "shares its memory", "hostNetwork": "shares its network"}
    rights = [words for name, words in shared.items() if spec.get(name)]
    containers = [
        each for kind in ("containers", "initContainers", "ephemeralContainers") for each in spec.get(kind) or []
    ]
    if any((each.get("securityContext") or {}).get("privileged") for each in containers):
        rights.insert(0, "privileged")
    if any(volume.get("hostPath") for volume in spec.get("volumes") or []):
        rights.append("mounts its folders")
    return rights


def _top(pod: Object, by_uid: Mapping[str, Object]) -> str:
    """Identifier of the object at the top that keeps a pod; `Node NAME` for a static one, empty where there is none."""
    found, seen = "", pod
    while True:
        owner = next((each for each in seen["metadata"].get("ownerReferences") or [] if each.get("controller")), None)
        if owner is None:
            return found
        if owner.get("kind") == "Node":
            return f"Node {owner.get('name')}"
        found = str(owner.get("uid"))
        if found not in by_uid:
            return found
        seen = by_uid[found]


def _name_of(top: str, by_uid: Mapping[str, Object], pod: Object) -> str:
    if top in by_uid:
        return describe(by_uid[top])
    owner = next(iter(pod["metadata"].get("ownerReferences") or []), None)
    if owner is None:
        return describe(pod)
    return f"{owner.get('kind')} {pod['metadata'].get('namespace')}/{owner.get('name')}"
