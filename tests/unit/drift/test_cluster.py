"""What is found in a cluster: nothing in a healthy one, and in a broken one exactly what was done to it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from ansible.module_utils.trainyard.core.finding import Finding, without
from ansible.module_utils.trainyard.drift.cluster import Snapshot, cluster_findings, snapshot
from ansible.module_utils.trainyard.kube.api import Api, KubeError
from ansible.module_utils.trainyard.kube.reads import read

from tests.unit.drift import clusters as given
from tests.unit.drift.clusters import HEALTHY, SITE, binding, node, obj, pod

CORDONED = node("worker1", unschedulable=True)
DRAINED = node("worker1", unschedulable=True)
DRAINED["metadata"]["annotations"] = {"trainyard.dev/cordoned": "true"}
EVIL = ("ServiceAccount", "evil", "default")
KUBEADM = "ConfigMap kube-system/kubeadm-config"
KUBELET = "ConfigMap kube-system/kubelet-config"


def with_node(one: Any) -> Snapshot:
    """The healthy cluster with one node in the place of the one of its name, or besides."""
    others = [each for each in HEALTHY.nodes if each["metadata"]["name"] != one["metadata"]["name"]]
    return replace(HEALTHY, nodes=[*others, one])


def with_pod(one: Any, *owners: Any) -> Snapshot:
    return replace(HEALTHY, pods=[*HEALTHY.pods, one], owners=[*HEALTHY.owners, *owners])


def with_binding(one: Any) -> Snapshot:
    others = [each for each in HEALTHY.bindings if each["metadata"]["name"] != one["metadata"]["name"]]
    return replace(HEALTHY, bindings=[*others, one])


def with_service(by: str, **spec: Any) -> Snapshot:
    return replace(HEALTHY, services=[*HEALTHY.services, obj("Service", "shop", "web", by=by, spec=spec)])


def edited(kind: str, old: str, new: str) -> Snapshot:
    text = HEALTHY.settings[kind] or ""
    assert old in text
    return replace(HEALTHY, settings={**HEALTHY.settings, kind: text.replace(old, new, 1)})


def ended(one: Any, **fields: Any) -> Any:
    return {**one, **fields}


SET = obj("DaemonSet", "miner", "kube-system", by="kubectl")
BROKEN: list[tuple[Snapshot, list[tuple[str, str]]]] = [
    (HEALTHY, []),
    (with_node(CORDONED), [("cordon of node worker1", "cordoned by hand")]),
    (with_node(DRAINED), [("cordon of node worker1", "cordoned by a drain of trainyard that did not end")]),
    (replace(HEALTHY, nodes=HEALTHY.nodes[:2]), [("Node worker2", "missing")]),
    (with_node(node("laptop", unschedulable=True)), [("Node laptop", "in the cluster")]),
    (with_node(node("worker1", ("mine", "NoExecute"))), [("taint mine:NoExecute of node worker1", "set")]),
    (
        with_node(node("worker1", ("node-role.kubernetes.io/control-plane", "NoSchedule"))),
        [("taint node-role.kubernetes.io/control-plane:NoSchedule of node worker1", "set")],
    ),
    (
        with_binding(binding("evil", EVIL, by="kubectl-create")),
        [("ClusterRoleBinding evil", "cluster-admin for ServiceAccount default/evil")],
    ),
    (
        with_binding(binding("evil", ("User", "eve", ""), by="kubectl", kind="RoleBinding")),
        [("RoleBinding web/evil", "cluster-admin for User eve")],
    ),
    (
        with_binding(binding("cluster-admin", ("Group", "system:masters", ""), EVIL, by="kube-apiserver")),
        [("ClusterRoleBinding cluster-admin", "cluster-admin for Group system:masters, ServiceAccount default/evil")],
    ),
    (
        # A namespace's binding may have any name.
        with_binding(binding("cluster-admin", ("Group", "system:masters", ""), by="x", kind="RoleBinding")),
        [("RoleBinding web/cluster-admin", "cluster-admin for Group system:masters")],
    ),
    (with_binding(binding("viewer", EVIL, by="kubectl", role="view")), []),
    (with_service("kubectl", type="NodePort", ports=[{"nodePort": 30080}]), [("Service web/shop", "NodePort 30080")]),
    (with_service("kubectl", type="LoadBalancer", ports=[{"nodePort": 31000}]), [
        ("Service web/shop", "LoadBalancer 31000")
    ]),
    (with_service("kubectl", type="ClusterIP", externalIPs=["10.0.0.9"]), [("Service web/shop", "address 10.0.0.9")]),
    (with_service("kubectl", type="ClusterIP", ports=[{"port": 80}]), []),
    (with_service("trainyard", type="NodePort", ports=[{"nodePort": 30080}]), []),
    (with_pod(pod("miner", None, hostPID=True)), [("Pod kube-system/miner", "sees its processes")]),
    (with_pod(pod("miner-1", SET, **given.PRIVILEGED), SET), [("DaemonSet kube-system/miner", "privileged")]),
    # Its owner is of a kind that is not read.
    (with_pod(pod("miner-1", SET, **given.PRIVILEGED)), [("DaemonSet kube-system/miner", "privileged")]),
    (with_pod(pod("kube-apiserver-worker1", given.CP1, hostNetwork=True)), [
        ("Pod kube-system/kube-apiserver-worker1", "shares its network")
    ]),
    (with_pod(pod("shell", None, volumes=[{"hostPath": {"path": "/"}}])), [
        ("Pod kube-system/shell", "mounts its folders")
    ]),
    (with_pod(pod("shell", None, ephemeralContainers=given.PRIVILEGED["containers"])), [
        ("Pod kube-system/shell", "privileged")
    ]),
    (with_pod(ended(pod("miner", None, hostPID=True), status={"phase": "Succeeded"})), []),
    (edited("KubeletConfiguration", "maxParallelImagePulls: 4", "maxParallelImagePulls: 9"), [
        (f"{KUBELET} maxParallelImagePulls", "9")
    ]),
    (edited("KubeletConfiguration", "memorySwap: {}", "maxPods: 5"), [(f"{KUBELET} maxPods", "5")]),
    (edited("KubeletConfiguration", "serializeImagePulls: false\n", ""), [
        (f"{KUBELET} serializeImagePulls", "missing")
    ]),
    (edited("KubeletConfiguration", "enabled: false", "enabled: true"), [
        (f"{KUBELET} authentication.anonymous.enabled", "true")
    ]),
    (edited("KubeletConfiguration", "mode: Webhook", "mode: AlwaysAllow"), [
        (f"{KUBELET} authorization.mode", "AlwaysAllow")
    ]),
    (edited("KubeletConfiguration", "rotateCertificates: true\n", ""), [(f"{KUBELET} rotateCertificates", "missing")]),
    (edited("KubeletConfiguration", "1m30s", "1m31s"), [(f"{KUBELET} syncFrequency", "1m31s")]),
    (edited("ClusterConfiguration", 'value: "false"', 'value: "true"'), [
        (f"{KUBEADM} apiServer.extraArgs", '[{"name": "profiling", "value": "true"}]')
    ]),
    (edited("ClusterConfiguration", "imageRepository: registry.k8s.io", "imageRepository: evil.example"), [
        (f"{KUBEADM} imageRepository", "evil.example")
    ]),
    (replace(HEALTHY, settings={**HEALTHY.settings, "ClusterConfiguration": None}), [(KUBEADM, "missing")]),
    (replace(HEALTHY, settings={**HEALTHY.settings, "ClusterConfiguration": "{"}), [(KUBEADM, "missing")]),
]  # fmt: skip


@pytest.mark.parametrize(("seen", "expected"), BROKEN)
def test_what_is_found(seen: Snapshot, expected: list[tuple[str, str]]) -> None:
    assert [(each.subject, each.before) for each in cluster_findings(seen, SITE)] == expected


def test_pods_of_one_owner_are_one_finding() -> None:
    two = [pod(name, SET, **given.PRIVILEGED) for name in ("miner-1", "miner-2")]
    found = cluster_findings(replace(HEALTHY, pods=two, owners=[SET]), SITE)
    assert [each.subject for each in found] == ["DaemonSet kube-system/miner"]


@pytest.mark.parametrize(
    ("accepted", "left"),
    [([], 2), (["Service web/shop"], 1), (["Service web/*"], 0), (["Service shop"], 2), (["*"], 0)],
)
def test_what_is_accepted_is_no_finding(accepted: list[str], left: int) -> None:
    found = [Finding("Service web/shop", "x", "y"), Finding("Service web/bank", "x", "y")]
    assert len(without(found, accepted)) == left


def answering(seen: Snapshot) -> Callable[..., tuple[int, str]]:
    """The transport of an API server that has a snapshot."""
    lists = {"nodes": seen.nodes, "services": seen.services, "clusterrolebindings": seen.bindings, "pods": seen.pods}
    lists["daemonsets"] = [each for each in seen.owners if each["kind"] == "DaemonSet"]

    def answer(method: str, path: str, *_: Any) -> tuple[int, str]:
        assert method == "GET"
        name = path.rpartition("/")[2]
        if name == "kubelet-config":
            return 200, json.dumps({"data": {"kubelet": seen.settings["KubeletConfiguration"]}})
        if name == "kubeadm-config":
            return 404, "{}"
        return 200, json.dumps({"apiVersion": "v1", "kind": "XList", "items": list(lists.get(name, ()))})

    return answer


def test_reading() -> None:
    seen = read(Api(answering(HEALTHY)), snapshot(["kube-system"]))
    assert len(seen.pods) == len(HEALTHY.pods) and len(seen.bindings) == len(HEALTHY.bindings)
    assert seen.owners[0]["metadata"]["name"] == "kube-proxy"
    assert seen.settings == {**HEALTHY.settings, "ClusterConfiguration": None}


def test_what_cannot_be_read_is_no_empty_cluster() -> None:
    with pytest.raises(KubeError):
        read(Api(lambda *_: (403, "{}")), snapshot(["kube-system"]))
