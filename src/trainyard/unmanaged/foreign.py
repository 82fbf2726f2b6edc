"""Find rights and doors in a cluster that neither a run renders nor Kubernetes creates."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..core.finding import Finding
from ..core.untrusted import at, items, mapping
from ..kube.api import Object, describe
from ..kube.reads import Reader, listing, must, objects
from .rendered import KINDS, Rendered
from .rights import BUILT_IN_ROLES as ROLES
from .rights import RBAC, Power, is_static, makes, names_of, powers_of, referred, rules_of, shown, subjects_of, words_of

RIGHTS = ("clusterrolebindings", "rolebindings", "clusterroles", "roles")
REMEDY = "find who needs it; then remove it, or list it in control_plane_accepted_findings"
ENDED = ("Succeeded", "Failed")
JOB_ENDED = ("Complete", "Failed")
KEEPERS: Mapping[str, Sequence[str]] = {
    "Pod": ("ReplicaSet", "ReplicationController", "DaemonSet", "StatefulSet", "Job"),
    "ReplicaSet": ("Deployment",),
    "Job": ("CronJob",),
}
"""Kind -> the kinds whose controllers create its objects. For other kinds an owner reference proves nothing."""


@dataclass(frozen=True)
class World:
    """The objects of all namespaces that may be a right or a door.

    :param bindings: ClusterRoleBinding and RoleBinding objects.
    :param roles: ClusterRole and Role objects.
    :param objects: objects of each kind in `KINDS`.
    """

    bindings: Sequence[Object] = ()
    roles: Sequence[Object] = ()
    objects: Sequence[Object] = ()


def world() -> Reader[World]:
    """Read all objects at once.

    :raises KubeError: something cannot be read.
    """
    lists = [listing(f"{RBAC}/v1", plural) for plural in RIGHTS]
    lists += [listing(kind.version, kind.plural) for kind in KINDS.values()]
    answers = yield tuple(lists)
    found = [must(objects(answer)) for answer in answers]
    # Items of a list have no kind, so the order of the lists gives it.
    named = [{**each, "kind": kind} for kind, rows in zip(KINDS, found[len(RIGHTS) :], strict=True) for each in rows]
    bindings = _kinds(("ClusterRoleBinding", "RoleBinding"), found[:2])
    return World(bindings, _kinds(("ClusterRole", "Role"), found[2:4]), named)


def _kinds(kinds: Sequence[str], lists: Sequence[Sequence[Object]]) -> list[Object]:
    return [{**each, "kind": kind} for kind, rows in zip(kinds, lists, strict=True) for each in rows]


def right_findings(seen: World, rendered: Rendered, system: Collection[str]) -> Iterator[Finding]:
    """Yield a finding for each binding with powers that neither the site nor Kubernetes gives.

    :param system: namespaces of the system.
    """
    rules = rules_of(seen.roles)
    for binding in seen.bindings:
        subjects = subjects_of(binding)
        if not subjects:
            continue
        namespace = str(binding["metadata"].get("namespace") or "")
        allowed = set(_allowed(binding, rendered, namespace, system))
        powers = powers_of(rules.get(referred(binding), []), namespace, system)
        left = [each for each in powers if each.name not in allowed]
        if left:
            given = ", ".join(shown(words_of(each)) for each in subjects)
            before = f"{shown(referred(binding)[-1])} for {given}: may {', '.join(names_of(left))}"
            yield Finding(named(binding), before, _foreign(left[0].why))


def _allowed(binding: Object, rendered: Rendered, namespace: str, system: Collection[str]) -> Sequence[str]:
    """Return the names of the powers of a binding that the site renders, or that Kubernetes creates."""
    role = referred(binding)
    if rendered.binds(binding):
        rules = rendered.rules(role)
        powers: list[Power] = [] if rules is None else powers_of(rules, namespace, system)
        return ROLES.get(role, ()) if rules is None else names_of(powers)
    return ROLES.get(role, ()) if makes(binding) else ()


def door_findings(seen: World, rendered: Rendered, control_plane: Sequence[str]) -> Iterator[Finding]:
    """Yield a finding for each object that opens more than a run renders. The pods of one owner are one finding.

    :param control_plane: nodes on which kubeadm runs static pods.
    """
    by_uid = {str(each["metadata"]["uid"]): each for each in seen.objects if each["metadata"].get("uid")}
    found: dict[str, Finding] = {}
    for obj in seen.objects:
        if _is_over(obj) or (obj["kind"] == "Pod" and is_static(obj, control_plane)):
            continue
        owner = _owner(obj, by_uid)
        # A ReplicaSet or a Job has the template of its owner, and its pods are checked separately.
        if owner is not obj and obj["kind"] != "Pod":
            continue
        doors = rendered.opens(obj, owner)
        if doors:
            subject = named(owner)
            found.setdefault(subject, Finding(subject, ", ".join(doors), _foreign(KINDS[obj["kind"]].why)))
    yield from found.values()


def _is_over(obj: Object) -> bool:
    """Return whether an object is a pod or a Job that has ended.

    A deleted object may still run for years, as its deletion waits for its grace period and for finalizers.
    """
    status = mapping(obj.get("status"))
    conditions = {mapping(each).get("type") for each in items(status.get("conditions")) if at(each, "status") == "True"}
    ended = status.get("phase") in ENDED if obj["kind"] == "Pod" else bool(conditions & set(JOB_ENDED))
    return obj["kind"] in ("Pod", "Job") and ended


def _owner(obj: Object, by_uid: Mapping[str, Object]) -> Object:
    """Return the top-level object that controls this one; the object itself if there is no valid owner.

    An object can name any owner. So an owner counts only if it exists with this identifier in the same namespace. The
    controller of its kind must also create such objects.
    """
    seen, passed = obj, {id(obj)}
    while True:
        keeper = next((each for each in items(seen["metadata"].get("ownerReferences")) if at(each, "controller")), None)
        above = by_uid.get(str(at(keeper, "uid")))
        if above is None or id(above) in passed or above["kind"] not in KEEPERS.get(seen["kind"], ()):
            return seen
        if above["metadata"].get("namespace") != obj["metadata"].get("namespace"):
            return seen
        passed.add(id(above))
        seen = above


def named(obj: Object) -> str:
    """Return the name of an object for findings."""
    return shown(describe(obj))


def _foreign(why: str) -> str:
    return f"not the site's ({why}); {REMEDY}"
