"""Rights that give access to the whole cluster, and those that Kubernetes creates by itself.

Parts: a table of RBAC rules; the powers of a binding; the rights and pods that Kubernetes creates. The last part
describes Kubernetes 1.36 and kubeadm 1.36, from their source code.

A name alone proves nothing. A binding counts only with its role and subjects, a role only with the powers listed here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.untrusted import at, items, line, mapping
from ..kube.api import Object

RBAC = "rbac.authorization.k8s.io"
ANY: tuple[str, ...] = ()
"""In a power: any value matches."""
WILD = ("*",)
"""In a power: only a wildcard matches."""
READ = ("get", "list", "watch")
WRITE = ("create", "update", "patch")
ROLES = ("roles", "clusterroles")
RUNS_PODS = (
    "pods",
    "pods/attach",
    "pods/ephemeralcontainers",
    "pods/exec",
    "replicationcontrollers",
    "daemonsets",
    "deployments",
    "replicasets",
    "statefulsets",
    "cronjobs",
    "jobs",
    "jobsets",
)
ENTERS_PODS = ("pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "services/proxy")
SYSTEM = "kube-system"


@dataclass(frozen=True)
class Power:
    """A right that gives more access than its rule shows.

    :param name: text of a finding after "may".
    :param verbs: verbs that give the power; a wildcard in a rule always matches. `groups` and `resources` likewise.
    :param why: reason of a finding, one clause.
    :param anywhere: whether it counts in each namespace; else only for all namespaces, or for one of the system.
    :param named: True if only rules with names of objects count, False if only rules without them; None for both.
    """

    name: str
    verbs: tuple[str, ...]
    groups: tuple[str, ...]
    resources: tuple[str, ...]
    why: str
    anywhere: bool = False
    named: bool | None = None


POWERS = (
    Power("do everything", WILD, WILD, WILD, "it is an administrator of the cluster or the namespace", anywhere=True),
    Power("escalate", ("escalate",), (RBAC,), ROLES, "it can give itself every right", anywhere=True),
    Power("bind roles", ("bind",), (RBAC,), ROLES, "it can give itself the rights of other roles", anywhere=True),
    Power(
        "write rights", WRITE, (RBAC,), (*ROLES, "rolebindings", "clusterrolebindings"),
        "it can pass its rights on", anywhere=True,
    ),
    Power(
        "impersonate",
        (
            "impersonate",
            "impersonate:user-info",
            "impersonate:serviceaccount",
            "impersonate:arbitrary-node",
            "impersonate:associated-node",
        ),
        ("", "authentication.k8s.io"),
        ("users", "groups", "serviceaccounts", "uids"),
        "it can act as another user",
    ),
    Power(
        "write webhooks and admission policies", WRITE, ("admissionregistration.k8s.io",),
        (
            "mutatingwebhookconfigurations",
            "validatingwebhookconfigurations",
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
        ),
        "it can read and change every object on its way to the API server",
    ),
    Power(
        "weaken admission policies", ("update", "patch", "delete", "deletecollection"),
        ("admissionregistration.k8s.io",),
        (
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
        ),
        "it can switch off what protects the objects of others",
    ),
    Power(
        "register APIs", WRITE, ("apiregistration.k8s.io",), ("apiservices",),
        "it can have requests and their credentials sent to its own server",
    ),
    Power(
        "approve or sign certificates", ("update", "patch", "approve", "sign", "attest"), ("certificates.k8s.io",),
        ("certificatesigningrequests/approval", "certificatesigningrequests/status", "signers"),
        "it can have certificates made for other users",
    ),
    Power(
        "reach kubelets", ("get", *WRITE), ("",), ("nodes/proxy",),
        "it can run commands in each pod of a node, past admission",
    ),
    Power("read all Secrets", READ, ("",), ("secrets",), "tokens and keys are among them", named=False),
    Power(
        "read single Secrets of the system", READ, ("",), ("secrets",), "one of them may hold a key of it", named=True
    ),
    Power(
        "make tokens of ServiceAccounts", ("create",), ("",), ("serviceaccounts/token",),
        "it can act as each of the controllers",
    ),
    Power(
        f"run pods in {SYSTEM}", WRITE, ("", "apps", "batch", "jobset.x-k8s.io"), RUNS_PODS,
        "pods there may have every right on their node",
    ),
    Power(
        "reach into pods", ("get", *WRITE), ("",), ENTERS_PODS,
        "it can run commands in pods of the system, or talk to them past network policies",
    ),
    Power("make PersistentVolumes", ("create",), ("",), ("persistentvolumes",), "one may be any folder of a node"),
    Power("do what wildcards cover", ANY, ANY, WILD, "a wildcard grows with each new kind"),
    Power("do what wildcards cover", ANY, WILD, ANY, "a wildcard grows with each new kind"),
    Power("do what wildcards cover", WILD, ANY, ANY, "a wildcard grows with each new verb"),
)  # fmt: skip
"""Sorted by severity. The first power covers all others."""
EVERYTHING = POWERS[0].name


Key = tuple[str, str, str]
"""Kind, namespace and name as in the API server. RBAC accepts nearly any text as a name, so keys are never cleaned:
`eve` and `"eve "` differ."""


def key_of(kind: Any, name: Any, namespace: Any = "") -> Key:
    """Return the key of an RBAC reference; a ClusterRole has no namespace."""
    kind, name, namespace = (each if isinstance(each, str) else "" for each in (kind, name, namespace))
    return kind, "" if kind == "ClusterRole" else namespace, name


def words_of(key: Key) -> str:
    """Return a key as raw text, such as `Role kube-system/x` or `ClusterRole x`."""
    kind, namespace, name = key
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def shown(text: str) -> str:
    """Return a name of RBAC for display.

    A name that cleaning would change is quoted, so that it neither deceives a reader nor matches an accepted name.
    """
    return text if line(text) == text else line(ascii(text))


def referred(binding: Object) -> Key:
    """Return the key of a binding's role."""
    role = mapping(binding.get("roleRef"))
    return key_of(role.get("kind"), role.get("name"), at(binding, "metadata", "namespace"))


def subjects_of(binding: Object) -> list[Key]:
    """Return the sorted keys of a binding's subjects."""
    found = [mapping(each) for each in items(binding.get("subjects"))]
    return sorted(key_of(each.get("kind"), each.get("name"), each.get("namespace")) for each in found)


def rules_of(roles: Sequence[Object]) -> dict[Key, list[Any]]:
    """Return the rules of each role: key -> rules.

    An aggregated role also gets the rules of the roles that its labels select, as the controller copies them within a
    second.
    """
    found: dict[Key, list[Any]] = {}
    for role in roles:
        rules = list(items(role.get("rules")))
        for selector in items(at(role, "aggregationRule", "clusterRoleSelectors")):
            wanted = mapping(at(selector, "matchLabels")).items()
            for other in roles if wanted else ():
                if wanted <= mapping(at(other, "metadata", "labels")).items():
                    rules += items(other.get("rules"))
        meta = mapping(role.get("metadata"))
        found[key_of(role.get("kind"), meta.get("name"), meta.get("namespace"))] = rules
    return found


def powers_of(rules: Sequence[Any], namespace: str, system: Collection[str]) -> list[Power]:
    """Return the powers that rules give, in the table's order.

    :param namespace: of the binding; empty for all namespaces.
    :param system: namespaces of the system.
    """
    wide = not namespace or namespace in system
    found = [each for each in POWERS if (wide or each.anywhere) and any(_gives(rule, each) for rule in rules)]
    return found[:1] if found and found[0].name == EVERYTHING else found


def names_of(powers: Sequence[Power]) -> list[str]:
    """Return the names of powers, each once."""
    return list(dict.fromkeys(each.name for each in powers))


def _gives(rule: Any, power: Power) -> bool:
    if power.named is not None and power.named != bool(items(at(rule, "resourceNames"))):
        return False
    # A rule that has only paths, such as /healthz, covers no object.
    return bool(items(at(rule, "resources"))) and all(
        _fits(items(at(rule, key)), wanted)
        for key, wanted in (("verbs", power.verbs), ("apiGroups", power.groups), ("resources", power.resources))
    )


def _fits(there: Sequence[Any], wanted: tuple[str, ...]) -> bool:
    return wanted == ANY or any(each in there for each in _spellings(wanted))


def _spellings(wanted: tuple[str, ...]) -> Iterator[str]:
    """Yield values and the wildcards that cover them: `*` covers all, `*/token` a subresource of every resource."""
    yield "*"
    for each in wanted:
        yield each
        if "/" in each:
            yield f"*/{each.partition('/')[2]}"


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
BUILT_IN_ROLES: Mapping[Key, Sequence[str]] = {
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
