"""The checks of the cluster against small API objects."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.unit.verify.views import site_checks
from trainyard.verify import cluster_checks as verify_checks
from trainyard.verify.cluster_checks import Expected
from trainyard.verify.observation import Observation, Unread, nothing_read
from trainyard.verify.verdict import FAIL, PASS, UNKNOWN

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
RECENT, LONG_AGO = "2026-11-21T11:59:30Z", "2026-11-21T11:00:00Z"
IMAGE, DIGEST = "mirror:5000/v2/calico/node:v3.28.5", f"sha256:{'ab' * 32}"
GOOD = {"dns": {"ok": True}, "service": {"ok": True}}


def expected(**changes: Any) -> Expected:
    values = {
        "nodes": ["cp1", "w1"],
        "kubelet_version": "1.36.3",
        "containerd_version": "2.3.4",
        "locked_images": {IMAGE: DIGEST},
    }
    values |= {"probes": {"cp1": GOOD, "w1": GOOD}}
    return Expected(**{**values, **changes})


def node(
    name: str, ready: str = "True", kubelet: str = "v1.36.3", runtime: str = "containerd://2.3.4"
) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {},
        "status": {
            "conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": ready}],
            "nodeInfo": {"kubeletVersion": kubelet, "containerRuntimeVersion": runtime},
        },
    }


def pod(
    phase: str = "Running", ready: str = "True", restarts: int = 0, ended: str = "", waiting: str = "", init: str = ""
) -> dict[str, Any]:
    container = {
        "name": "main",
        "imageID": "" if waiting else f"mirror:5000/v2/calico/node@{DIGEST}",
        "restartCount": restarts,
        "state": {"waiting": {"reason": waiting}} if waiting else {"running": {}},
        "lastState": {"terminated": {"finishedAt": ended}} if ended else {},
    }
    first = [{"name": "first", "state": {"waiting": {"reason": init}}}] if init else []
    return {
        "metadata": {"name": "p", "namespace": "kube-system"},
        "spec": {"containers": [{"name": "main", "image": IMAGE}]},
        "status": {
            "phase": phase,
            "conditions": [{"type": "Ready", "status": ready}],
            "containerStatuses": [container],
            "initContainerStatuses": first,
        },
    }


@pytest.mark.parametrize(
    ("nodes", "planning", "result", "detail"),
    [
        ([node("cp1"), node("w1")], False, PASS, "2 nodes are Ready"),
        ([node("cp1"), node("w1"), node("x")], False, PASS, "2 nodes are Ready"),
        ([node("cp1"), node("w1", "False")], False, FAIL, "w1 is not Ready"),
        ([node("cp1"), node("w1", "Unknown")], False, FAIL, "w1 is not Ready"),
        ([node("cp1")], False, FAIL, "w1 is not in the cluster"),
        ([], False, FAIL, "cp1 is not in the cluster; w1 is not in the cluster"),
        ([node("cp1")], True, UNKNOWN, "not in the cluster yet: w1"),
        ([node("cp1", "False")], True, FAIL, "w1 is not in the cluster; cp1 is not Ready"),
    ],
)
def test_nodes_ready(nodes: list[Any], planning: bool, result: str, detail: str) -> None:
    check = verify_checks.nodes_ready(expected(planning=planning), nodes)
    assert (check.result, check.detail) == (result, detail)


@pytest.mark.parametrize(
    ("changed", "result", "detail"),
    [
        ({}, PASS, "kubelet 1.36.3, containerd 2.3.4 on all nodes"),
        ({"kubelet": "v1.36.1"}, FAIL, "w1 runs kubelet 1.36.1 instead of 1.36.3"),
        ({"runtime": "containerd://v2.3.3"}, FAIL, "w1 runs containerd 2.3.3 instead of 2.3.4"),
        ({"runtime": "cri-o://2.3.4"}, FAIL, "w1 runs containerd cri-o://2.3.4 instead of 2.3.4"),
        ({"kubelet": ""}, FAIL, "w1 runs kubelet (unknown) instead of 1.36.3"),
    ],
)
def test_node_versions(changed: dict[str, str], result: str, detail: str) -> None:
    check = verify_checks.node_versions(expected(), [node("cp1"), node("w1", **changed), node("x", kubelet="v1.0.0")])
    assert (check.result, check.detail) == (result, detail)


@pytest.mark.parametrize(
    ("one", "trouble"),
    [
        (pod(), ""),
        (pod("Succeeded", "False"), ""),
        (pod("Pending", "False"), "is Pending"),
        (pod("Failed", "False"), "is Failed"),
        (pod(ready="False"), "is not Ready"),
        (pod(ready="False", waiting="CrashLoopBackOff"), "waits: CrashLoopBackOff"),
        (pod("Pending", "False", waiting="ContainerCreating"), "is Pending"),
        (pod("Pending", "False", waiting="ImagePullBackOff"), "waits: ImagePullBackOff"),
        (pod("Pending", "False", waiting="PodInitializing", init="CrashLoopBackOff"), "waits: CrashLoopBackOff"),
        (pod(restarts=1, ended=RECENT), ""),
        (pod(restarts=9, ended=LONG_AGO), ""),
        (pod(restarts=3, ended=RECENT), "keeps restarting (container main)"),
        ({"metadata": {"name": "p"}}, "is Unknown"),
    ],
)
def test_pod_trouble(one: dict[str, Any], trouble: str) -> None:
    assert verify_checks.pod_trouble(one, NOW) == trouble


@pytest.mark.parametrize(
    ("pods", "result", "detail"),
    [
        ({"kube-system": [pod()]}, PASS, "all pods in kube-system are healthy"),
        ({"kube-system": [pod()], "jobset-system": []}, FAIL, "namespace jobset-system has no pods"),
        ({"kube-system": [pod(), pod(ready="False")]}, FAIL, "kube-system/p is not Ready"),
    ],
)
def test_system_pods(pods: dict[str, Any], result: str, detail: str) -> None:
    check = verify_checks.system_pods(pods, NOW)
    assert (check.result, check.detail, check.settles) == (result, detail, result == FAIL)


@pytest.mark.parametrize(
    ("finding", "result", "detail"),
    [
        (GOOD, PASS, "2 nodes do it"),
        ({"dns": {"ok": False, "error": "no answer"}}, FAIL, "w1: no answer"),
        ({"unreachable": True, "msg": "no route"}, UNKNOWN, "not probed: w1"),
        ({"skipped": True}, UNKNOWN, "not probed: w1"),
        ({"dns": {"ok": True, "verified": True}}, PASS, "2 nodes do it"),
        # Anybody may have answered.
        ({"dns": {"ok": True, "verified": False}}, UNKNOWN, "w1 has no CA to verify the answer with"),
        ({}, UNKNOWN, "not probed: w1"),
    ],
)
def test_probed(finding: dict[str, Any], result: str, detail: str) -> None:
    check = verify_checks.probed("dns", "do it", expected(probes={"cp1": GOOD, "w1": finding}))
    assert (check.result, check.detail) == (result, detail)


def test_bad_finding_outweighs_a_missing_one() -> None:
    check = verify_checks.probed("dns", "do it", expected(probes={"cp1": {"dns": {"ok": False}}}))
    assert (check.result, check.detail) == (FAIL, "cp1: no answer")


def test_site_that_cannot_be_read_is_unknown_throughout() -> None:
    checks = site_checks(expected(probes={}), nothing_read(Unread("no answer", settles=True)))
    assert {check.result for check in checks} == {UNKNOWN}
    assert all(check.settles for check in checks[:4])
    assert verify_checks.warnings(expected(), nothing_read(Unread("no answer"))) == []


def test_healthy_site_passes_every_check() -> None:
    seen = Observation("", [node("cp1"), node("w1")], {"kube-system": [pod()]}, [])
    assert {check.result for check in site_checks(expected(), seen)} == {PASS}


def test_shared_files_are_judged_where_a_node_mounts_them() -> None:
    seen = Observation("", [node("cp1"), node("w1")], {"kube-system": [pod()]}, [])
    mounted = {**GOOD, "shared_files": {"ok": True}}
    for other, result in (({"ok": True}, PASS), ({"ok": False, "error": "nothing is mounted at /srv"}, FAIL)):
        probes = {"cp1": mounted, "w1": {**GOOD, "shared_files": other}}
        (check,) = [each for each in site_checks(expected(probes=probes), seen) if each.name == "shared_files"]
        assert check.result == result and ("w1: nothing is mounted at /srv" in check.detail) is (result == FAIL)


def test_warnings_name_strangers_and_cordoned_nodes() -> None:
    nodes = [node("cp1"), {**node("w1"), "spec": {"unschedulable": True}}, node("x")]
    seen = Observation("", nodes, {}, [])
    assert verify_checks.warnings(expected(), seen) == [
        "node x is in the cluster and not in the inventory",
        "node w1 is cordoned",
    ]


def test_versions_and_restarts_are_collected() -> None:
    found = verify_checks.versions([node("cp1"), node("w1", kubelet="v1.36.1")], [pod()])
    assert found == {"kubelet": "1.36.1, 1.36.3", "containerd": "2.3.4", "v2/calico/node": "v3.28.5"}
    assert verify_checks.restarts([pod(), {**pod(restarts=2), "metadata": {"name": "q"}}]) == {"q": 2}
