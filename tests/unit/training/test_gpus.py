"""GPUs of nodes: what one pod can have, who holds them, and what is refused before it would wait for ever."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.training.samples import training
from tests.unit.training.scripted import Cluster
from trainyard.core.errors import TrainyardError
from trainyard.kube.api import Api
from trainyard.trainings.follow import Follower, Settings
from trainyard.trainings.gpu_requests import gpu_faults, whereabouts


def node(name: str, gpus: int, healthy: int | None = None, labels: Any = None, **spec: Any) -> dict:
    offers = {"capacity": gpus, "allocatable": gpus if healthy is None else healthy}
    status = {key: {"nvidia.com/gpu": str(value)} for key, value in offers.items()} if gpus else {}
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": spec, "status": status}


def shared(name: str, shares: int) -> dict:
    return node(name, shares, labels={"nvidia.com/gpu.sharing-strategy": "time-slicing"})


def driver(name: str, cuda: str) -> dict:
    return node(name, 1, labels={"nvidia.com/cuda.runtime-version.full": cuda})


NEW = {"kind": "new"}


def holder(name: str, where: str, count: int = 1) -> dict:
    limits = {"limits": {"nvidia.com/gpu": str(count)}}
    return {
        "metadata": {"name": name, "namespace": "a"},
        "spec": {"nodeName": where, "containers": [{"resources": limits}]},
        "status": {"phase": "Running"},
    }


@pytest.mark.parametrize(
    ("worker", "nodes"),
    [
        ({}, []),
        ({"gpus": 4}, [node("a", 2), node("b", 4)]),
        ({"gpus": 1}, [shared("a", 4)]),
        # The pod goes to the node whose GPUs are whole.
        ({"gpus": 2}, [shared("a", 8), node("b", 2)]),
        ({"gpus": 1, "cuda": "12.9"}, [driver("a", "12.2"), driver("b", "13.0"), node("c", 1)]),
        ({"gpus": 1, "node_selector": NEW}, [node("a", 1, labels=NEW)]),
        # An old driver is no matter to those that do not come there.
        ({"gpus": 1, "cuda": "13.0", "node_selector": NEW}, [node("a", 1, labels=NEW), driver("b", "12.2")]),
        ({"cuda": "13.0"}, [driver("a", "12.2")]),
    ],
)
def test_pods_that_have_a_place(worker: dict[str, Any], nodes: list[dict]) -> None:
    assert list(gpu_faults(training(topology="multi_worker", worker=worker), nodes)) == []


@pytest.mark.parametrize(
    ("worker", "nodes", "said"),
    [
        ({"gpus": 8}, [node("a", 2), node("b", 4)], "a pod of worker requests 8 GPUs, but b has the most, 4"),
        ({"gpus": 1}, [node("a", 0)], "requests 1 GPUs, but no node has any"),
        ({"gpus": 2}, [node("a", 2, healthy=1)], "a has the most, 1"),
        (
            {"gpus": 2},
            [shared("a", 8), node("b", 0)],
            "requests 2 GPUs, but a has the most, 8, each of them shared, and a pod gets only one",
        ),
        ({"gpus": 1, "node_selector": NEW}, [node("a", 1)], "requests 1 GPUs, but no node with kind=new has any"),
        (
            {"gpus": 1, "cuda": "13.0"},
            [driver("a", "12.2"), driver("b", "13.0")],
            "the image of worker has CUDA 13.0, but the driver of a supports 12.2 at most (playbooks/gpu_driver.yml",
        ),
    ],
)
def test_pods_that_would_wait_for_ever_or_end_at_their_start(
    worker: dict[str, Any], nodes: list[dict], said: str
) -> None:
    (fault,) = gpu_faults(training(topology="multi_worker", worker=worker), nodes)
    assert said in fault


def test_where_all_gpus_are() -> None:
    nodes = [
        node("b", 2, unschedulable=True),
        node("a", 4, healthy=3),
        node("c", 0, labels={"trainyard.dev/gpu": "skew"}),
    ]
    pods = [holder("two", "a", 2), holder("one", "a"), holder("none", "cp", 0)]
    assert whereabouts([*nodes, node("cp", 0)], pods) == (
        "a: 0 of 3 free, held by a/one, a/two (2); b: 2 of 2 free, cordoned; c: 0 of 0 free, skew"
    )
    assert whereabouts([node("cp", 0)], []) == "no node has any"


def test_one_that_finds_no_gpu_is_given_up_with_those_who_have_them(tmp_path: Path) -> None:
    why = "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 Insufficient nvidia.com/gpu."
    run = training(logs={"claim": "training"}, worker={"gpus": 1})
    cluster = Cluster(run, [(1, "start", "worker-1", {"why": why})])
    offers = {"capacity": {"nvidia.com/gpu": "1"}, "allocatable": {"nvidia.com/gpu": "1"}}
    cluster.objects["/api/v1/nodes/worker1"] = {"metadata": {"name": "worker1"}, "status": offers}
    cluster.objects["/api/v1/namespaces/a/pods/other"] = {
        "metadata": {"name": "other", "namespace": "a"},
        "spec": {"nodeName": "worker1", "containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
        "status": {"phase": "Running"},
    }
    follower = Follower(Api(cluster), run, Settings(str(tmp_path), isolation_probe=False), print, cluster.clock)
    with pytest.raises(TrainyardError) as refused:
        follower.follow("20261121T120000Z-0001", submitted=True)
    for said in (refused.value.message, cluster.record["why"]):
        assert f"worker-1 Unschedulable: {why}" in said
        assert "GPUs: worker1: 0 of 1 free, held by a/other" in said
