"""Rights that no run renders. Every object here has the field manager `trainyard`: any client may choose it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.unmanaged.clusters import PRIVILEGED, SITE, found, seen
from tests.unit.unmanaged.objects import binding, obj, pod, role
from trainyard.unmanaged.foreign import REMEDY
from trainyard.unmanaged.rights import shown
from trainyard.unmanaged.unmanaged_objects import cluster_findings

EVE = "User eve"
ALL = "* */*"


def powers(*rules: str, namespace: str = "", kind: str = "ClusterRole", subject: str = EVE) -> str:
    """What is said of a subject that is bound to a role of these rules."""
    own = role("own", *rules, namespace=namespace if kind == "Role" else "")
    said = found(own, binding("b", subject, role=f"{kind} own", namespace=namespace))
    return said[0][1].partition(": may ")[2] if said else ""


def test_the_four_proven_kinds() -> None:
    assert found(
        binding("eve", EVE),
        role("own", ALL),
        binding("robot", "ServiceAccount web/robot", role="ClusterRole own"),
        obj("Service", "shop", "web", spec={"type": "NodePort", "ports": [{"nodePort": 30080}]}),
        pod("miner", namespace="web", **PRIVILEGED),
    ) == [
        ("ClusterRoleBinding eve", "cluster-admin for User eve: may do everything"),
        ("ClusterRoleBinding robot", "own for ServiceAccount web/robot: may do everything"),
        ("Service web/shop", "NodePort 30080"),
        ("Pod web/miner", "privileged"),
    ]


def test_a_finding_says_why_and_what_to_do() -> None:
    (one,) = cluster_findings(seen(binding("eve", EVE)), SITE)
    assert one.after == f"not the site's (it is an administrator of the cluster or the namespace); {REMEDY}"


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("* */*", "do everything"),
        ("escalate rbac.authorization.k8s.io/clusterroles", "escalate"),
        ("bind rbac.authorization.k8s.io/roles", "bind roles"),
        ("create rbac.authorization.k8s.io/rolebindings", "write rights"),
        ("impersonate /users", "impersonate"),
        ("impersonate authentication.k8s.io/uids", "impersonate"),
        ("patch admissionregistration.k8s.io/mutatingwebhookconfigurations", "write webhooks and admission policies"),
        ("create apiregistration.k8s.io/apiservices", "register APIs"),
        ("update certificates.k8s.io/certificatesigningrequests/approval", "approve or sign certificates"),
        ("sign certificates.k8s.io/signers", "approve or sign certificates"),
        ("get /nodes/proxy", "reach kubelets"),
        ("list /secrets", "read all Secrets"),
        ("create /serviceaccounts/token", "make tokens of ServiceAccounts"),
        ("create /pods", "run pods in kube-system"),
        ("patch apps/daemonsets", "run pods in kube-system"),
        ("create */pods", "run pods in kube-system, do what wildcards cover"),
        ("* example.org/things", "do what wildcards cover"),
        ("get */things", "do what wildcards cover"),
        ("create /*/token", "make tokens of ServiceAccounts"),
        ("delete admissionregistration.k8s.io/validatingadmissionpolicies", "weaken admission policies"),
        ("patch admissionregistration.k8s.io/validatingadmissionpolicybindings", "weaken admission policies"),
        ("deletecollection admissionregistration.k8s.io/mutatingadmissionpolicies", "weaken admission policies"),
        ("get /pods/exec", "reach into pods"),
        ("create /pods/portforward", "reach into pods"),
        ("get /pods/proxy", "reach into pods"),
        ("update /services/proxy", "reach into pods"),
        ("create /pods/exec", "run pods in kube-system, reach into pods"),
        ("create /persistentvolumes", "make PersistentVolumes"),
        ("get,list,watch,update /persistentvolumes", ""),
        ("get,list admissionregistration.k8s.io/validatingadmissionpolicies", ""),
        ("get,list,watch /pods,configmaps,nodes", ""),
        ("delete /pods", ""),
    ],
)
def test_a_rule_gives(rule: str, expected: str) -> None:
    for subject in (EVE, "Group system:authenticated", "ServiceAccount web/robot"):
        assert powers(rule, subject=subject) == expected
    # A Role of the system's namespace leads as far, one of another namespace only where it passes its rights on.
    assert powers(rule, namespace="kube-system", kind="Role") == expected
    anywhere = {"do everything", "escalate", "bind roles", "write rights"}
    assert powers(rule, namespace="web", kind="Role") == (expected if expected in anywhere else "")
    assert powers(rule, namespace="web") == (expected if expected in anywhere else "")


def test_single_secrets_are_not_all_of_them() -> None:
    own = role("own", "get /secrets")
    own["rules"][0]["resourceNames"] = ["mine"]
    single = "own for User eve: may read single Secrets of the system"
    assert found(own, binding("b", EVE, role="ClusterRole own")) == [("ClusterRoleBinding b", single)]
    inside = binding("b", EVE, role="ClusterRole own", namespace="kube-system")
    assert found(own, inside) == [("RoleBinding kube-system/b", single)]
    assert found(own, binding("b", EVE, role="ClusterRole own", namespace="web")) == []


def test_what_kubeadm_gives_those_who_join_is_its_own() -> None:
    joining, certs = "Group system:bootstrappers:kubeadm:default-node-token", "kubeadm:kubeadm-certs"
    own = role(certs, "get /secrets", namespace="kube-system")
    own["rules"][0]["resourceNames"] = ["kubeadm-certs"]
    place = {"role": f"Role kube-system/{certs}", "namespace": "kube-system"}
    assert found(own, binding(certs, joining, **place)) == []
    assert found(own, binding(certs, EVE, **place)) and found(own, binding("b", joining, **place))
    del own["rules"][0]["resourceNames"]
    assert found(own, binding(certs, joining, **place))


def test_rights_through_aggregated_roles() -> None:
    chosen = {"clusterRoleSelectors": [{"matchLabels": {"to-view": "true"}}]}
    part = role("part", ALL)
    part["metadata"]["labels"] = {"to-view": "true"}
    assert found(part, role("view", aggregationRule=chosen)) == [
        ("ClusterRoleBinding viewer", "view for User eve: may do everything")
    ]


@pytest.mark.parametrize(
    "one",
    [
        binding("cluster-admin", "Group system:masters", EVE),
        binding("kubeadm:cluster-admins", EVE),
        binding("cluster-admin", "Group system:masters", namespace="web"),
        binding("system:controller:eve", "ServiceAccount kube-system/eve", role="ClusterRole cluster-admin"),
        binding("jobset", "ServiceAccount jobset-system/jobset", EVE, role="ClusterRole jobset"),
        binding("jobset", "ServiceAccount jobset-system/jobset"),
    ],
)
def test_a_name_is_no_proof(one: dict[str, Any]) -> None:
    assert [subject.partition(" ")[0] for subject, _ in found(one)] == [one["kind"]]


def test_a_role_with_a_name_of_kubernetes_has_no_more_than_kubernetes_gives_it() -> None:
    name = "system:controller:deployment-controller"
    bound = binding(name, "ServiceAccount kube-system/deployment-controller", role=f"ClusterRole {name}")
    assert found(role(name, "create /pods"), bound) == []
    assert found(role(name, "create /pods", "list /secrets"), bound)[0][1].endswith(": may read all Secrets")
    evil = "system:controller:evil"
    bound = binding(evil, "ServiceAccount kube-system/evil", role=f"ClusterRole {evil}")
    assert found(role(evil, "create /pods"), bound)


def test_a_role_that_a_run_renders_has_no_more_than_it_renders() -> None:
    assert found(role("jobset", "* /secrets", "create /serviceaccounts/token")) == [
        (
            "ClusterRoleBinding jobset",
            "jobset for ServiceAccount jobset-system/jobset: may make tokens of ServiceAccounts",
        )
    ]


def test_hostile_names_are_shown_as_what_they_are() -> None:
    (said,) = found(binding("eve\x1b[2K\r", "User a\nb\x1b[31m"))
    assert said == (r"'ClusterRoleBinding eve\x1b[2K\r'", r"cluster-admin for 'User a\nb\x1b[31m': may do everything")


@pytest.mark.parametrize("name", ["own ", " own", "own\u200e", "own\x1b[0m", "own\n"])
@pytest.mark.parametrize("last", [True, False])
def test_a_role_of_a_similar_name_hides_none(name: str, last: bool) -> None:
    both = [role("own", ALL), role(name)]
    said = found(*(both if last else both[::-1]), binding("b", EVE, role="ClusterRole own"))
    assert said == [("ClusterRoleBinding b", "own for User eve: may do everything")]


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("cluster-admin", "system:masters "),
        ("cluster-admin", "system:masters\u200e"),
        ("kubeadm:cluster-admins", " kubeadm:cluster-admins"),
    ],
)
def test_a_subject_of_a_similar_name_is_another_one(name: str, group: str) -> None:
    bound = binding(name, f"Group {group}")
    assert found(bound) == [
        (f"ClusterRoleBinding {name}", f"cluster-admin for {shown(f'Group {group}')}: may do everything")
    ]


def test_a_namespace_is_no_part_of_a_name() -> None:
    own = binding("jobset", "ServiceAccount jobset-system/jobset", role="ClusterRole jobset")
    own["subjects"][0] |= {"namespace": "", "name": "jobset-system/jobset"}
    assert [subject for subject, _ in found(own)] == ["ClusterRoleBinding jobset"]
    own["subjects"][0] |= {"namespace": "jobset-system", "name": "jobset "}
    assert [subject for subject, _ in found(own)] == ["ClusterRoleBinding jobset"]
