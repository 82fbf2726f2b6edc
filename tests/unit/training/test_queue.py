"""Who holds what a run waits for, and one run in detail."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from tests.unit.apiserver import ApiServer
from trainyard.cli.trainings import show
from trainyard.core.errors import TrainyardError
from trainyard.kube.api import Api
from trainyard.kube.reads import read
from trainyard.trainings.queue import HeldBy, open_nodes, shortages
from trainyard.trainings.run_detail import reading
from trainyard.trainings.runs import runs, seconds_left

NOW = datetime(2026, 11, 22, 12, 5, 0, tzinfo=UTC)
GPU = "nvidia.com/gpu"
NO_PLACE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes are available"}


def node(name: str, gpus: int = 2, **spec: Any) -> dict[str, Any]:
    status = {"allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110", GPU: str(gpus)}}
    return {"metadata": {"name": name, "labels": {}}, "spec": spec, "status": status}


def jobset(name: str) -> dict[str, Any]:
    annotations = {"trainyard.dev/attempt": "20261121T120000Z-0001", "trainyard.dev/deciding": "chief-0"}
    labels = {"app.kubernetes.io/managed-by": "trainyard", "trainyard.dev/run": name}
    meta = {"name": name, "namespace": "t", "annotations": annotations, "labels": labels}
    container = {
        "name": "tensorflow",
        "args": ["--learning_rate=0.1", "--attempt=20261121T120000Z-0001", "--log_dir=/logs/" + name],
    }
    volumes = [{"name": "logs", "persistentVolumeClaim": {"claimName": "logs"}}]
    pod = {"template": {"spec": {"containers": [container], "volumes": volumes}}}
    jobs = [{"name": "chief", "template": {"spec": pod}}]
    meta["creationTimestamp"] = "2026-11-22T12:00:00Z"
    return {"metadata": meta, "spec": {"replicatedJobs": jobs}, "status": {"restarts": 1}}


def pod(run: str, role: str, gpus: int, where: str = "", **more: Any) -> dict[str, Any]:
    labels = {"trainyard.dev/run": run, "trainyard.dev/role": role, "batch.kubernetes.io/job-completion-index": "0"}
    labels["jobset.sigs.k8s.io/restart-attempt"] = "1"
    status: dict[str, Any] = {"phase": "Pending", "conditions": [NO_PLACE]}
    if where:
        status = {"phase": "Running", "containerStatuses": [{"state": {"running": {"startedAt": "12:00"}}}]}
    meta = {"name": f"{run}-{role}-0-0-x", "namespace": "t", "labels": labels, "uid": "1"}
    meta["creationTimestamp"] = "2026-11-22T12:00:00Z"
    container = {"resources": {"requests": {GPU: str(gpus)}, "limits": {GPU: str(gpus)}}}
    return {"metadata": meta, "spec": {"nodeName": where, "containers": [container]}, "status": status, **more}


def server(*pods: dict[str, Any]) -> ApiServer:
    step = {"event": "step", "step": 1200, "steps_total": 2000, "steps_per_second": 2.0, "loss": 0.5}
    names = sorted({each["metadata"]["labels"]["trainyard.dev/run"] for each in pods})
    return ApiServer(
        {f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/t/jobsets/{name}": jobset(name) for name in names}
        | {f"/api/v1/namespaces/t/pods/{each['metadata']['name']}": each for each in pods}
        | {f"/api/v1/nodes/{name}": node(name) for name in ("w1", "w2")}
        | {"/api/v1/namespaces/t/pods/cnn-chief-0-0-x/log": lambda _: json.dumps(step)}
    )


WAITS = server(pod("cnn", "chief", 2, "w1"), pod("cnn", "worker", 2, "w2"), pod("mnist", "chief", 1))
BY_CNN = HeldBy("t", "cnn", ["chief-0", "worker-0"], GPU, 4, 1200, 2000, 400.0)


def test_a_run_that_waits_says_who_holds_it_and_for_how_long() -> None:
    cnn, mnist = sorted(runs(Api(WAITS), NOW), key=lambda each: each.run)
    assert (cnn.loss, cnn.steps_per_second, cnn.seconds_left, cnn.held_by) == (0.5, 2.0, 400.0, ())
    assert mnist.state == "waiting"
    assert mnist.held_by == (BY_CNN,)


def test_the_table_names_who_holds_it() -> None:
    console = Console(width=160, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    show(runs(Api(WAITS), NOW), console)
    assert console.export_text().splitlines()[-1] == "mnist: nvidia.com/gpu is held by cnn (about 7 min left)"


def test_who_may_not_see_nodes_sees_the_run_all_the_same() -> None:
    WAITS.objects["/api/v1/nodes"] = 403
    (mnist,) = [each for each in runs(Api(WAITS), NOW) if each.run == "mnist"]
    del WAITS.objects["/api/v1/nodes"]
    assert (mnist.state, mnist.held_by) == ("waiting", ())


@pytest.mark.parametrize(
    ("step", "left"),
    [
        ({}, None),
        ({"step": 500, "steps_total": 1000, "steps_per_second": 10.0}, 50.0),
        ({"step": 500, "steps_total": 0, "steps_per_second": 10.0}, None),
        ({"step": 500, "steps_total": 1000, "steps_per_second": 0.0}, None),
        ({"step": 500, "steps_total": 1000}, None),
        ({"step": 1000, "steps_total": 1000, "steps_per_second": 10.0}, 0.0),
        ({"step": 1, "steps_total": 10**299, "steps_per_second": 1e-300}, None),
    ],
)
def test_time_left(step: dict[str, Any], left: float | None) -> None:
    assert seconds_left(step) == left


@pytest.mark.parametrize(
    ("asked", "nodes", "never", "short"),
    [
        (1, [node("w1", 2)], None, None),
        (3, [node("w1", 2), node("w2", 2)], True, "w1"),
        (2, [node("w1", 2), node("w2", 4)], False, "w2"),
    ],
)
def test_shortages(asked: int, nodes: list[Any], never: bool | None, short: str | None) -> None:
    full = [pod("x", "chief", 4, "w2"), pod("y", "chief", 1, "w1")]
    found = shortages(pod("mnist", "chief", asked), nodes, full)
    if never is None:
        assert found == []
        return
    assert (found[0].resource, found[0].asked, found[0].never) == (GPU, asked, never)
    assert found[0].largest is not None
    assert found[0].largest.node == short


def test_a_cordoned_node_has_no_room() -> None:
    nodes = [node("w2"), node("w1"), node("w3", unschedulable=True)]
    assert [each["metadata"]["name"] for each in open_nodes(pod("mnist", "chief", 1), nodes)] == ["w1", "w2"]


def test_one_run_in_detail() -> None:
    found = read(Api(WAITS), reading("t", "cnn", NOW))
    assert [(each.place, each.node, each.state, each.restart, each.gpus) for each in found.pods] == [
        ("chief-0", "w1", "running", 1, 2),
        ("worker-0", "w2", "running", 1, 2),
    ]
    assert [(each.name, each.goes_on, each.result, each.restarts) for each in found.attempts] == [
        ("20261121T120000Z-0001", True, "running", 1)
    ]
    assert found.knobs == {"learning_rate": "0.1"}
    assert found.files == {"claim": "logs", "folder": "/logs/cnn"}
    assert [each["step"] for each in found.said] == [1200]
    assert (found.row.run, found.row.state, found.deciding) == ("cnn", "running", "chief-0")


def test_a_waiting_run_in_detail_says_who_holds_it() -> None:
    assert read(Api(WAITS), reading("t", "mnist", NOW)).row.held_by == (BY_CNN,)


def test_an_unknown_run_names_those_that_there_are() -> None:
    with pytest.raises(TrainyardError, match=r"no run mnst in the namespace t") as caught:
        read(Api(WAITS), reading("t", "mnst", NOW))
    assert caught.value.remedy == "Did you mean mnist? There are: cnn, mnist."


def ended_pod(**status: Any) -> dict[str, Any]:
    return pod("cnn", "chief", 1, "w1", status={"phase": "Failed", **status})


def test_how_a_pod_ended() -> None:
    over = {"exitCode": 137, "reason": "OOMKilled", "startedAt": "1", "finishedAt": "2"}
    killed = ended_pod(containerStatuses=[{"state": {"terminated": over}}])
    evicted = ended_pod(reason="Evicted")
    (one,) = read(Api(server(killed)), reading("t", "cnn", NOW)).pods
    assert (one.state, one.why, one.exit_code, one.started, one.finished) == ("ended", "OOMKilled", 137, "1", "2")
    (two,) = read(Api(server(evicted)), reading("t", "cnn", NOW)).pods
    assert (two.state, two.why, two.exit_code) == ("ended", "Evicted", None)
