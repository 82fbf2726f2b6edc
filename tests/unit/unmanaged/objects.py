"""Objects as an API server returns them, cut to what the rules of drift look at."""

from __future__ import annotations

from typing import Any

RBAC = "rbac.authorization.k8s.io"


def obj(kind: str, name: str, namespace: str = "", *, by: str = "trainyard", **parts: Any) -> dict[str, Any]:
    """An object that a field manager has applied; its name says nothing about who that was."""
    place = {"namespace": namespace} if namespace else {}
    managed = [{"manager": by, "operation": "Apply"}, {"manager": "kube-controller-manager", "operation": "Update"}]
    meta = {"name": name, "uid": f"uid-{kind}-{namespace}-{name}", "managedFields": managed, **place}
    return {"kind": kind, "metadata": meta, **parts}


def owned(one: dict[str, Any], owner: dict[str, Any]) -> dict[str, Any]:
    """An object that says that another one keeps it."""
    meta = owner["metadata"]
    one["metadata"]["ownerReferences"] = [
        {"kind": owner["kind"], "name": meta["name"], "uid": meta["uid"], "controller": True}
    ]
    return one


def pod(name: str, owner: dict[str, Any] | None = None, namespace: str = "kube-system", **spec: Any) -> dict[str, Any]:
    made = obj("Pod", name, namespace, spec=spec, status={"phase": "Running"})
    return owned(made, owner) if owner else made


def static(name: str, **spec: Any) -> dict[str, Any]:
    made = pod(name, obj("Node", "cp1", by="kubelet"), **spec)
    made["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "0f"}
    return made


def keeper(kind: str, name: str, namespace: str = "kube-system", **spec: Any) -> dict[str, Any]:
    """A controller of pods with this template."""
    return obj(kind, name, namespace, spec={"template": {"spec": spec}})


def node(name: str, *taints: tuple[str, str], **spec: Any) -> dict[str, Any]:
    found = [{"key": key, "effect": effect} for key, effect in taints]
    return obj("Node", name, by="kubelet", spec={**spec, **({"taints": found} if found else {})})


def binding(name: str, *subjects: str, role: str = "ClusterRole cluster-admin", namespace: str = "") -> dict[str, Any]:
    """A binding; subjects as findings name them, such as `User eve` or `ServiceAccount kube-system/robot`."""
    found = []
    for kind, _, rest in (each.partition(" ") for each in subjects):
        place, _, last = rest.rpartition("/")
        found.append({"kind": kind, "name": last, **({"namespace": place} if place else {})})
    kind, _, called = role.partition(" ")
    ref = {"apiGroup": RBAC, "kind": kind, "name": called.rpartition("/")[2]}
    return obj("RoleBinding" if namespace else "ClusterRoleBinding", name, namespace, roleRef=ref, subjects=found)


def role(name: str, *rules: str, namespace: str = "", **parts: Any) -> dict[str, Any]:
    """A role; each rule is `VERBS GROUP/RESOURCES`, with commas, such as `get,list /secrets`."""
    made = []
    for verbs, _, rest in (each.partition(" ") for each in rules):
        group, _, resources = rest.partition("/")
        made.append({"verbs": verbs.split(","), "apiGroups": [group], "resources": resources.split(",")})
    return obj("Role" if namespace else "ClusterRole", name, namespace, rules=made, **parts)
