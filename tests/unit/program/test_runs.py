"""`trainyard trainings`: one row for each run, from what the cluster says."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from tests.unit.apiserver import ApiServer
from trainyard.cli.trainings import show
from trainyard.kube.api import Api, KubeError
from trainyard.trainings.run_index import Found
from trainyard.trainings.runs import Row, newest, row, runs

EARLIER = "20261121T110000Z-0000"

NOW = datetime(2026, 11, 22, 12, 5, 0, tzinfo=UTC)


def jobset(ended: str = "", **meta: Any) -> dict[str, Any]:
    annotations = {"trainyard.dev/spec-hash": "a", "trainyard.dev/attempt": "20261122T120000Z-00ff"}
    annotations |= {"trainyard.dev/workload": "mnist_ps", "trainyard.dev/deciding": "chief-0"}
    jobs = [
        {"name": role, "replicas": 1, "template": {"spec": {"parallelism": count}}}
        for role, count in {"chief": 1, "ps": 1, "worker": 2}.items()
    ]
    return {
        "kind": "JobSet",
        "metadata": {
            "name": "wide", "namespace": "trainings", "annotations": annotations,
            "labels": {"app.kubernetes.io/managed-by": "trainyard", "trainyard.dev/run": "wide"},
            "creationTimestamp": "2026-11-22T12:00:00Z", **meta,
        },
        "spec": {"replicatedJobs": jobs},
        "status": {"terminalState": ended} if ended else {},
    }  # fmt: skip


def pod(role: str, index: int, state: dict[str, Any] | None = None, *, when: int = 0, gpus: int = 0) -> dict[str, Any]:
    labels = {
        "trainyard.dev/run": "wide",
        "trainyard.dev/role": role,
        "batch.kubernetes.io/job-completion-index": str(index),
    }
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return {
        "metadata": {
            "name": f"wide-{role}-0-{index}-{when}", "namespace": "trainings", "labels": labels, "uid": str(when),
            "creationTimestamp": f"2026-11-22T12:00:{when:02d}Z",
        },
        "spec": {"containers": [{"resources": {"limits": limits}}]},
        "status": {"phase": "Running", "containerStatuses": [{"state": state or {"running": {}}}]},
    }  # fmt: skip


PODS = [pod("chief", 0), pod("ps", 0), pod("worker", 0, gpus=2), pod("worker", 1, gpus=2)]


def kept(record: dict[str, Any], name: str = "wide") -> dict[str, Any]:
    labels = {"app.kubernetes.io/managed-by": "trainyard", "trainyard.dev/run": name}
    return {
        "metadata": {
            "name": f"{name}-result", "namespace": "trainings", "labels": labels,
            "annotations": {"trainyard.dev/workload": "mnist_ps"},
        },
        "data": {"result.json": json.dumps(record)},
    }  # fmt: skip


STEP = {"event": "step", "step": 400, "steps_total": 2000}
RECORD = {
    "result": "passed", "steps": 2000, "train_steps": 2000, "accuracy": 0.95, "attempt": "20261122T120000Z-00ff",
    "submitted_at": "2026-11-22T12:00:00Z",
}  # fmt: skip
DEVICE = {"event": "device", "compute": "cpu", "gpu_allocated": 4}
SOON = {"waiting": {"reason": "ContainerCreating"}}
PULL = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}


@pytest.mark.parametrize(
    ("there", "record", "pods", "said", "expected"),
    [
        (jobset(), {}, PODS, [STEP],
         {"state": "running", "step": 400, "steps": 2000, "pods": 4, "wanted": 4, "gpus": 4}),
        (jobset(), {}, [*PODS[:2], pod("worker", 0, SOON)], [], {"state": "starting", "pods": 2, "wanted": 4}),
        # A program that reports no steps runs all the same.
        (jobset(), {}, PODS, [], {"state": "running", "step": None}),
        (jobset(), {}, [], [], {"state": "starting"}),
        (jobset(), {}, [*PODS[:3], pod("worker", 1, PULL)], [STEP],
         {"state": "waiting", "why": "worker-1 ImagePullBackOff: no such image", "pods": 3}),
        (jobset(), {}, [], [STEP], {"state": "restarting", "pods": 0}),
        (jobset("Completed"), RECORD, [], [], {"state": "passed", "step": 2000, "accuracy": 0.95, "wanted": 0}),
        (jobset("Failed"), {}, [], [], {"state": "failed", "step": None}),
        (jobset("Completed"), {"result": "running"}, [], [], {"state": "ended"}),
        (jobset("Completed"), {"result": "unknown", "why": "unread"}, [], [], {"state": "ended", "why": "unread"}),
        (jobset("Failed"), {"result": "failed", "why": "exit 3"}, [], [], {"state": "failed", "why": "exit 3"}),
        (None, {**RECORD, "result": "stopped"}, [], [], {"state": "stopped", "accuracy": 0.95}),
        (None, RECORD, [], [], {"state": "passed", "age": 300.0}),
        # Somebody has told it to save and to stop, and its pods have not ended yet.
        (None, {**RECORD, "result": "running"}, PODS, [], {"state": "stopping", "step": 2000, "pods": 4, "wanted": 0}),
        (None, {**RECORD, "result": "running"}, [], [], {"state": "ended"}),
        # What is on record is about the attempt before this one.
        (jobset(), {**RECORD, "attempt": "20261101T000000Z-00ff"}, PODS, [], {"state": "running", "accuracy": None}),
        (jobset(), {}, PODS, [STEP, {"event": "evaluate", "accuracy": 0.9}], {"accuracy": 0.9, "age": 300.0}),
        (jobset(), {}, PODS, [DEVICE, STEP], {"gpus": 4, "compute": "cpu", "gpu_allocated": 4}),
        (None, {**RECORD, "compute": "gpu", "gpu_allocated": 4}, [], [], {"gpus": 0, "compute": "gpu"}),
        (jobset(), {**RECORD, **DEVICE, "attempt": EARLIER}, PODS, [STEP], {"compute": None, "gpu_allocated": None}),
    ],
)  # fmt: skip
def test_row(there: Any, record: Any, pods: Any, said: Any, expected: dict[str, Any]) -> None:
    found = row(Found("wide", "trainings", there, kept(record) if record else None), pods, said, NOW)
    assert {name: getattr(found, name) for name in expected} == expected


def test_the_newest_pod_stands_for_its_place_and_places_are_counted_not_spelt() -> None:
    pods = [pod("worker", 10), pod("worker", 2, when=1), pod("worker", 2, when=9)]
    assert [each["metadata"]["name"] for each in newest(pods).values()] == ["wide-worker-0-2-9", "wide-worker-0-10-0"]


def test_runs_of_all_namespaces_with_what_the_chief_says() -> None:
    server = ApiServer(
        {
            "/apis/jobset.x-k8s.io/v1alpha2/namespaces/trainings/jobsets/wide": jobset(),
            "/apis/jobset.x-k8s.io/v1alpha2/namespaces/other/jobsets/foreign": {
                "metadata": {"name": "foreign", "namespace": "other"}
            },
            "/api/v1/namespaces/trainings/configmaps/old-result": kept(RECORD, "old"),
            "/api/v1/namespaces/trainings/configmaps/collector": {
                "metadata": {"name": "collector", "namespace": "trainings"}, "data": {"program": "x"},
            },
            **{f"/api/v1/namespaces/trainings/pods/{each['metadata']['name']}": each for each in PODS},
            "/api/v1/namespaces/trainings/pods/wide-chief-0-0-0/log": lambda query: "noise\n" + json.dumps(STEP),
        }
    )  # fmt: skip
    assert [(each.run, each.state, each.step) for each in runs(Api(server), NOW)] == [
        ("wide", "running", 400),
        ("old", "passed", 2000),
    ]
    assert not server.writes


@pytest.mark.parametrize(("status", "rows"), [(500, 1), (403, None)])
def test_a_node_that_does_not_answer_hides_no_run(status: int, rows: int | None) -> None:
    server = ApiServer(
        {
            "/apis/jobset.x-k8s.io/v1alpha2/namespaces/trainings/jobsets/wide": jobset(),
            **{f"/api/v1/namespaces/trainings/pods/{each['metadata']['name']}": each for each in PODS},
            "/api/v1/namespaces/trainings/pods/wide-chief-0-0-0/log": status,
        }
    )
    if rows is None:
        with pytest.raises(KubeError):
            runs(Api(server), NOW)
    else:
        assert [(each.state, each.step) for each in runs(Api(server), NOW)] == [("running", None)]


def test_table() -> None:
    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    show([Row("wide", "trainings", "mnist_ps", "waiting", "worker-1 [x]", 400, 2000, None, 7500, 3, 4, 2)], console)
    header, line, why = console.export_text().rstrip().splitlines()
    assert header.split() == ["run", "workload", "state", "step", "accuracy", "age", "pods", "GPUs"]
    assert line.split() == ["wide", "mnist_ps", "waiting", "400", "of", "2000", "-", "2h5m", "3/4", "2"]
    assert why == "wide: worker-1 [x]"


def test_a_run_that_does_not_use_its_gpus_is_named_below_the_table() -> None:
    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    one = Row("wide", "trainings", "mnist_ps", "running", "", 400, 2000, None, 7500, 4, 4, 2, "cpu", 2)
    show([one, replace(one, run="fast", compute="gpu"), replace(one, run="quiet", compute=None)], console)
    said = [line for line in console.export_text().splitlines() if ":" in line]
    assert said == ["wide: computes on the CPU, 2 GPUs allocated and not used"]
