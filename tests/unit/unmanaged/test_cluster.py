"""What is found in a cluster: nothing in a healthy one, and in a broken one exactly what was done to it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.unmanaged.clusters import HEALTHY, SITE
from tests.unit.unmanaged.objects import node
from trainyard.core.errors import TrainyardError
from trainyard.core.finding import Finding, accepted_of, without
from trainyard.kube.api import Api, KubeError, describe
from trainyard.kube.reads import read
from trainyard.unmanaged.rendered import KINDS
from trainyard.unmanaged.unmanaged_objects import Snapshot, cluster_findings, snapshot

CORDONED = node("worker1", unschedulable=True)
DRAINED = node("worker1", unschedulable=True)
DRAINED["metadata"]["annotations"] = {"trainyard.dev/cordoned": "true"}
KUBEADM = "ConfigMap kube-system/kubeadm-config"
KUBELET = "ConfigMap kube-system/kubelet-config"


def with_node(one: Any) -> Snapshot:
    """The healthy cluster with one node in the place of the one of its name, or besides."""
    others = [each for each in HEALTHY.nodes if each["metadata"]["name"] != one["metadata"]["name"]]
    return replace(HEALTHY, nodes=[*others, one])


def edited(kind: str, old: str, new: str) -> Snapshot:
    text = HEALTHY.settings[kind] or ""
    assert old in text
    return replace(HEALTHY, settings={**HEALTHY.settings, kind: text.replace(old, new, 1)})


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


VERIFIES = {"name": "kubelet-certificate-authority", "value": "/etc/kubernetes/pki/ca.crt"}


def test_a_flag_that_only_new_clusters_get_is_no_drift() -> None:
    documents = copy.deepcopy(list(SITE.documents))
    documents[1]["apiServer"]["extraArgs"].append(VERIFIES)
    site = replace(SITE, documents=documents)
    assert cluster_findings(HEALTHY, site) == []
    first = "  - name: profiling"
    flag = "  - name: kubelet-certificate-authority\n    value: /x\n"
    other = edited("ClusterConfiguration", first, flag + first)
    assert [each.subject for each in cluster_findings(other, site)] == [f"{KUBEADM} apiServer.extraArgs"]


WITH_REASON = {"name": "Service web/shop", "reason": "the shop"}


@pytest.mark.parametrize(
    ("accepted", "left"),
    [
        ([], 2),
        (["Service web/shop"], 1),
        ([WITH_REASON], 1),
        (["Service web/*"], 0),
        (["Service shop"], 2),
        ([WITH_REASON, "*"], 0),
    ],
)
def test_what_is_accepted_is_no_finding(accepted: list[Any], left: int) -> None:
    found = [Finding("Service web/shop", "x", "y"), Finding("Service web/bank", "x", "y")]
    assert len(without(found, accepted_of(accepted))) == left


@pytest.mark.parametrize("entry", ["", 5, None, {"name": "a"}, {"name": "a", "reason": ""}, {"name": 1, "reason": "b"}])
def test_what_is_no_accepted_finding_is_refused(entry: Any) -> None:
    with pytest.raises(TrainyardError, match="is not an accepted finding"):
        accepted_of([entry])


PLURALS = {kind: each.plural for kind, each in KINDS.items()} | {
    kind: f"{kind.lower()}s" for kind in ("Node", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding")
}


def answering(seen: Snapshot) -> Callable[..., tuple[int, str]]:
    """The transport of an API server that has a snapshot."""
    everything = [*seen.nodes, *seen.world.bindings, *seen.world.roles, *seen.world.objects]
    lists: dict[str, list[Any]] = {}
    for each in everything:
        # The API server names the kind in the list alone.
        lists.setdefault(PLURALS[each["kind"]], []).append({key: value for key, value in each.items() if key != "kind"})

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
    seen = read(Api(answering(HEALTHY)), snapshot())
    for mine, theirs in zip(seen.world.__dict__.values(), HEALTHY.world.__dict__.values(), strict=True):
        assert sorted(map(describe, mine)) == sorted(map(describe, theirs))
    assert seen.settings == {**HEALTHY.settings, "ClusterConfiguration": None}
    assert cluster_findings(replace(seen, settings=HEALTHY.settings), SITE) == []


def test_what_cannot_be_read_is_no_empty_cluster() -> None:
    with pytest.raises(KubeError):
        read(Api(lambda *_: (403, "{}")), snapshot())
