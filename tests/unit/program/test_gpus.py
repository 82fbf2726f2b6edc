"""`trainyard gpus`: one row for each node with GPUs, from what the cluster says."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from tests.unit.apiserver import ApiServer
from trainyard.cli.gpus import show
from trainyard.cli.terminal import Terminal
from trainyard.kube.api import Api
from trainyard.trainings.gpu_requests import Holder, Row, gpus, held, row

LABELS = {
    "trainyard.dev/gpu": "ready",
    "nvidia.com/gpu.product": "Tesla-T4",
    "nvidia.com/gpu.memory": "15360",
    "nvidia.com/cuda.driver-version.full": "580.95.05",
    "nvidia.com/cuda.runtime-version.full": "13.0",
}


def node(name: str = "w1", capacity: int = 2, healthy: int = 2, labels: Any = LABELS, **spec: Any) -> dict[str, Any]:
    offers = {"capacity": {"nvidia.com/gpu": str(capacity)}, "allocatable": {"nvidia.com/gpu": str(healthy)}}
    meta = {"name": name, "labels": dict(labels)}
    return {"metadata": meta, "spec": spec, "status": offers if capacity else {}}


def pod(name: str, count: int = 1, *, where: str = "w1", phase: str = "Running", **meta: Any) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": str(count)} if count else {}
    return {
        "metadata": {"name": name, "namespace": "a", **meta},
        "spec": {"nodeName": where, "containers": [{"resources": {"limits": limits}}, {}]},
        "status": {"phase": phase},
    }


def rows(*objects: dict[str, Any]) -> list[Row]:
    pods = [each for each in objects if "nodeName" in each["spec"]]
    nodes = [each for each in objects if each not in pods]
    server = ApiServer(
        {f"/api/v1/namespaces/a/pods/{each['metadata']['name']}": each for each in pods}
        | {f"/api/v1/nodes/{each['metadata']['name']}": each for each in nodes}
    )
    return gpus(Api(server))


def test_a_node_shows_what_it_has_and_who_holds_it() -> None:
    labels = {"trainyard.dev/run": "wide", "trainyard.dev/role": "worker"}
    labels |= {"batch.kubernetes.io/job-completion-index": "1"}
    mine = pod("wide-worker-0-1-x", labels=labels)
    mine["status"]["containerStatuses"] = [
        {"allocatedResourcesStatus": [{"name": "nvidia.com/gpu", "resources": [{"health": "Unhealthy"}]}]}
    ]
    (found,) = rows(node(healthy=1), node("cp1", 0, labels={}), mine, pod("done", phase="Succeeded"), pod("none", 0))
    assert found == Row(
        "w1", "Tesla-T4", 15360, "580.95.05", "13.0", 2, 1, "none", "ready", [Holder("wide worker-1", 1, 1)], 0
    )


def test_pods_elsewhere_and_pending_ones_hold_nothing_here() -> None:
    pending = pod("pending")
    pending["spec"]["nodeName"] = ""
    (found,) = rows(node(), pending, pod("other", 2, where="w9"), pod("two", 2))
    assert [each.pod for each in found.holders] == ["a/two"]
    assert found.free == 0


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "ready"),
        ({"labels": {**LABELS, "trainyard.dev/gpu": "skew"}, "healthy": 0}, "skew"),
        ({"capacity": 0}, "no plugin"),
        ({"unschedulable": True}, "cordoned"),
    ],
)
def test_states(changes: dict[str, Any], state: str) -> None:
    (found,) = rows(node(**changes))
    assert found.state == state


def test_sharing_is_named_with_its_replicas() -> None:
    more = {"nvidia.com/gpu.sharing-strategy": "time-slicing", "nvidia.com/gpu.replicas": "4"}
    more["nvidia.com/gpu.product"] = "Tesla-T4-SHARED"
    found = row(node(labels={**LABELS, **more}), [])
    assert (found.sharing, found.product) == ("time-slicing x4", "Tesla-T4")


def test_a_pod_that_has_ended_holds_nothing() -> None:
    assert [held(pod("p", 2, phase=phase)) for phase in ("Running", "Pending", "Succeeded", "Failed")] == [2, 2, 0, 0]


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    show([row(node(healthy=1), [Holder("a/two", 2, 1)])], Console(width=160))
    head, line = capsys.readouterr().out.splitlines()
    assert head.split()[:6] == ["node", "GPU", "memory", "driver", "CUDA", "healthy"]
    assert line.split()[:6] == ["w1", "Tesla-T4", "15", "GiB", "580.95.05", "13.0"]
    assert "1 of 2" in line
    assert line.rstrip().endswith("a/two (2), unhealthy")
    show([row(node(), [])], Console(width=60))
    narrow = capsys.readouterr().out
    assert "…" not in narrow, "what is too wide goes on in the next line"
    show([], Console())
    assert capsys.readouterr().out == "No GPUs.\n"


def test_a_file_gets_every_row_in_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    show([row(node(), [Holder("a/" + "x" * 300, 1, 1)])], Terminal())
    assert len(capsys.readouterr().out.splitlines()) == 2
