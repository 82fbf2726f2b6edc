"""Rights and doors in the verdict: what neither a run renders nor Kubernetes makes fails it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.apiserver import ApiServer
from tests.unit.unmanaged.clusters import HEALTHY as CLUSTER
from tests.unit.unmanaged.clusters import OWN, PRIVILEGED
from tests.unit.unmanaged.objects import binding, obj, pod, role, static
from tests.unit.verify.test_site import HEALTHY, judge
from trainyard.unmanaged.rendered import plan_record
from trainyard.unmanaged.rights import RBAC

CONFIG = "/api/v1/namespaces/kube-system/configmaps/kubelet-config"
EVE = binding("eve", "User eve")
SHOP = obj("Service", "shop", "web", spec={"type": "NodePort", "ports": [{"nodePort": 30080}]})
PROVEN = [
    (EVE, "rights", "ClusterRoleBinding eve: cluster-admin for User eve: may do everything"),
    (
        binding("b", "User eve", role="ClusterRole own"),
        "rights",
        "ClusterRoleBinding b: own for User eve: may do everything",
    ),
    (SHOP, "doors", "Service web/shop: NodePort 30080"),
    (pod("miner", namespace="web", **PRIVILEGED), "doors", "Pod web/miner: privileged"),
]  # fmt: skip


def server(*more: Any) -> ApiServer:
    """The healthy cluster of drift behind an API server, with further objects."""
    world = CLUSTER.world
    lists: dict[str, list[Any]] = {}
    for each in (*world.bindings, *world.roles, *world.objects, role("own", "* */*"), *more):
        lists.setdefault(f"{each['kind'].lower()}s", []).append(each)
    places = {"services": "/api/v1", "pods": "/api/v1", "apiservices": "/apis/apiregistration.k8s.io/v1"}
    places |= dict.fromkeys(("daemonsets", "deployments", "replicasets"), "/apis/apps/v1")
    places |= {name: f"/apis/{RBAC}/v1" for name in lists if "role" in name}
    places |= {name: "/apis/admissionregistration.k8s.io/v1" for name in lists if "webhook" in name}
    found = {f"{place}/{name}": {"items": lists.get(name, [])} for name, place in places.items()}
    return ApiServer({**HEALTHY, **found})


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    """A kubeconfig with the record of a run beside it."""
    path = str(tmp_path / "kubeconfig")
    plan_record(path, "network", OWN).execute()
    return path


def receipt(cluster: ApiServer, kubeconfig: str, **changes: Any) -> Any:
    site, _ = judge(cluster, kubeconfig=kubeconfig, control_plane=["cp1"], recorded=["network"], **changes)
    return site.result()


def test_the_sites_own_objects_pass(kubeconfig: str) -> None:
    found = receipt(server(), kubeconfig)
    assert (found["verdict"], found["problems"], "allowed" in found["receipt"]) == ("pass", [], False)


@pytest.mark.parametrize(("one", "check", "words"), PROVEN)
def test_what_is_foreign_fails(one: Any, check: str, words: str, kubeconfig: str) -> None:
    found = receipt(server(one), kubeconfig)
    assert (found["verdict"], found["problems"]) == ("fail", [f"{check}: fail: {words}"])


def test_what_the_site_allows_is_shown_with_its_reason(kubeconfig: str) -> None:
    accepted = [{"name": "Service web/*", "reason": "the shop\x1b[2K"}, "ClusterRoleBinding eve"]
    found = receipt(server(EVE, SHOP), kubeconfig, accepted=accepted)
    assert found["verdict"] == "pass"
    assert found["receipt"]["allowed"] == [
        {"name": "ClusterRoleBinding eve", "found": "cluster-admin for User eve: may do everything", "reason": ""},
        {"name": "Service web/shop", "found": "NodePort 30080", "reason": "the shop"},
    ]
    assert "allowed: Service web/shop: NodePort 30080 (the shop)" in found["table"]


def test_without_a_record_nothing_can_be_said(tmp_path: Path) -> None:
    found = receipt(server(EVE), str(tmp_path / "none"))
    assert found["verdict"] == "unknown"
    assert found["problems"][0] == (
        "rights: unknown: this controller has no record of the rendered objects of network: "
        "run site.yml, which writes it"
    )


def test_what_cannot_be_read_is_unknown(kubeconfig: str) -> None:
    cluster = server()
    cluster.objects[f"/apis/{RBAC}/v1/clusterroles"] = 403
    assert [each.partition(":")[0] for each in receipt(cluster, kubeconfig)["problems"]] == ["rights", "doors"]


@pytest.mark.parametrize(
    ("flags", "serving", "warned"),
    [
        (["--kubelet-certificate-authority=/etc/kubernetes/pki/ca.crt"], "true", False),
        (["--kubelet-certificate-authority="], "true", True),
        ([], "true", True),
        ([], "false", False),
    ],
)
def test_an_api_server_that_verifies_no_kubelet_is_a_warning(
    flags: list[str], serving: str, warned: bool, kubeconfig: str
) -> None:
    one = static("kube-apiserver-cp1", hostNetwork=True, containers=[{"command": ["kube-apiserver", *flags]}])
    cluster = server(one)
    cluster.objects[CONFIG] = {"data": {"kubelet": f"serverTLSBootstrap: {serving}\n"}}
    found = receipt(cluster, kubeconfig)
    assert any("kube-apiserver-cp1 does not verify kubelets" in each for each in found["receipt"]["warnings"]) is warned
    assert not [each for each in found["problems"] if each.startswith(("rights", "doors"))]
