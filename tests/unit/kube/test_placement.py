"""Quantities, what a pod asks for, and what keeps it away from a node."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.kube.placement import amount, bars, lacking, left, requests, shown, unplaced


@pytest.mark.parametrize(
    ("text", "number"),
    [("500m", 0.5), ("2", 2), (3, 3), ("1Gi", 2**30), ("1.5G", 1.5e9), ("100k", 1e5), ("1e3", 1000), ("7u", 7e-6)],
)
def test_amounts(text: object, number: float) -> None:
    assert amount(text) == pytest.approx(number)


@pytest.mark.parametrize("text", ["", "much", "1 Gi", "1X", None])
def test_what_is_no_quantity(text: object) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        amount(text)


def test_amounts_for_people() -> None:
    parts = [("cpu", 0.1), ("cpu", 2.0), ("memory", 1.5 * 2**30), ("memory", 100.0), ("nvidia.com/gpu", 1.0)]
    assert [shown(*each) for each in parts] == ["0.1", "2", "1.5Gi", "100", "1"]


def container(restart: str = "", **asked: str) -> dict[str, Any]:
    return {"resources": {"requests": asked}, **({"restartPolicy": restart} if restart else {})}


@pytest.mark.parametrize(
    ("spec", "asked"),
    [
        ({"containers": [container(cpu="1"), container(cpu="500m", memory="1Ki")]}, {"cpu": 1.5, "memory": 1024}),
        # A container's limit is its request where it says none.
        ({"containers": [{"resources": {"limits": {"nvidia.com/gpu": "2"}}}]}, {"nvidia.com/gpu": 2}),
        ({"containers": [container(cpu="1")], "initContainers": [container(cpu="3")]}, {"cpu": 3}),
        ({"containers": [container(cpu="1")], "initContainers": [container("Always", cpu="3")]}, {"cpu": 4}),
        ({"containers": [container(cpu="1")], "overhead": {"cpu": "250m"}}, {"cpu": 1.25}),
        ({"containers": [container(cpu="1")], **container(cpu="2")}, {"cpu": 2}),
        ({"containers": [{}]}, {}),
    ],
)
def test_requests(spec: dict[str, Any], asked: dict[str, float]) -> None:
    assert requests({"spec": spec}) == {**asked, "pods": 1}


def node(**spec: Any) -> dict[str, Any]:
    labels = {"kubernetes.io/hostname": "w1", "zone": "a", "cpus": "8"}
    status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}
    return {"metadata": {"name": "w1", "labels": labels}, "spec": spec, "status": status}


def on(name: str, phase: str, cpu: str) -> dict[str, Any]:
    return {"spec": {"nodeName": name, "containers": [container(cpu=cpu)]}, "status": {"phase": phase}}


def test_what_is_left_counts_pods_that_have_not_ended() -> None:
    pods = [on("w1", "Running", "1"), on("w1", "Pending", "500m"), on("w1", "Succeeded", "2"), on("w2", "Running", "2")]
    found = left(node(), pods)
    assert (found["cpu"], found["pods"]) == (2.5, 108)
    assert lacking({"cpu": 2.5, "pods": 1}, found) == []
    assert lacking({"cpu": 3, "nvidia.com/gpu": 1}, found) == ["cpu", "nvidia.com/gpu"]


def term(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}]}


def affinity(*terms: str) -> dict[str, Any]:
    wanted = {"requiredDuringSchedulingIgnoredDuringExecution": term(*terms)}
    return {"affinity": {"nodeAffinity": wanted}}


MINE = {"key": "mine", "value": "x", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("pod", "spec", "found"),
    [
        ({}, {}, []),
        ({}, {"unschedulable": True, "taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]},
         [("cordon", "w1")]),
        ({}, {"taints": [MINE]}, [("taint", "mine=x:NoSchedule")]),
        ({"tolerations": [{"key": "mine", "value": "x"}]}, {"taints": [MINE]}, []),
        ({"tolerations": [{"key": "mine", "value": "y"}]}, {"taints": [MINE]}, [("taint", "mine=x:NoSchedule")]),
        ({"tolerations": [{"operator": "Exists"}]}, {"taints": [MINE]}, []),
        ({"tolerations": [{"key": "mine", "operator": "Exists", "effect": "NoExecute"}]}, {"taints": [MINE]},
         [("taint", "mine=x:NoSchedule")]),
        ({}, {"taints": [{"key": "soft", "effect": "PreferNoSchedule"}]}, []),
        ({"nodeSelector": {"zone": "b"}}, {}, [("selector", "zone=b")]),
        ({"nodeSelector": {"zone": "a"}}, {}, []),
        (affinity("zone", "In", "b", "c"), {}, [("selector", "node affinity: zone In b, c")]),
        (affinity("zone", "NotIn", "b"), {}, []),
        (affinity("gpu", "Exists"), {}, [("selector", "node affinity: gpu Exists")]),
        (affinity("gpu", "DoesNotExist"), {}, []),
        (affinity("cpus", "Gt", "4"), {}, []),
        (affinity("cpus", "Lt", "4"), {}, [("selector", "node affinity: cpus Lt 4")]),
    ],
)  # fmt: skip
def test_bars(pod: dict[str, Any], spec: dict[str, Any], found: list[tuple[str, str]]) -> None:
    assert [(each.kind, each.detail) for each in bars({"spec": pod}, node(**spec))] == found


def test_a_volume_on_another_node_keeps_a_pod_away() -> None:
    far = {
        "metadata": {"name": "files"},
        "spec": {"nodeAffinity": {"required": term("kubernetes.io/hostname", "In", "w9")}},
    }
    near = {
        "metadata": {"name": "files"},
        "spec": {"nodeAffinity": {"required": term("kubernetes.io/hostname", "In", "w1")}},
    }
    assert [each.kind for each in bars({"spec": {}}, node(), [far])] == ["volume"]
    assert not list(bars({"spec": {}}, node(), [near, {"metadata": {"name": "nfs"}, "spec": {}}]))


def test_only_the_schedulers_no_makes_a_pod_unplaced() -> None:
    def said(**condition: str) -> dict[str, Any]:
        return {"status": {"conditions": [{"type": "PodScheduled", "status": "False", **condition}]}}

    assert unplaced(said(reason="Unschedulable", message="0/3 nodes")) == "0/3 nodes"
    assert unplaced(said(reason="SchedulingGated")) is None
    assert unplaced({}) is None
