"""The program that ends pods on lost nodes, against an API server in memory."""

from __future__ import annotations

import importlib.util
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.unit.apiserver import ApiServer

PROGRAM = Path(__file__).resolve().parents[3] / "roles/workloads/files/lost_pod_collector.py"
PODS = "/api/v1/namespaces/trainings/pods"


def load() -> Any:
    spec = importlib.util.spec_from_file_location("lost_pod_collector", PROGRAM)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


collector = load()


def node(name: str, ready: str) -> dict[str, Any]:
    conditions = [{"type": "MemoryPressure", "status": "Unknown"}, {"type": "Ready", "status": ready}]
    return {"metadata": {"name": name}, "status": {"conditions": conditions}}


def pod(name: str, on: str, *, deleted: bool, phase: str = "Running") -> dict[str, Any]:
    meta = {"name": name, "namespace": "trainings", "uid": f"uid-{name}"}
    if deleted:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": meta, "spec": {"nodeName": on}, "status": {"phase": phase}}


class Site:
    """The calls of the collector, on a server with these nodes and pods; paths without their query."""

    def __init__(self, nodes: list[dict[str, Any]], pods: list[dict[str, Any]]) -> None:
        self.server = ApiServer(
            {"/api/v1/nodes": {"items": nodes}, "/api/v1/namespaces": {"items": [{"metadata": {"name": "trainings"}}]}}
            | {f"{PODS}/{each['metadata']['name']}": each for each in pods}
        )
        self.bodies: list[Any] = []

    def call(self, method: str, path: str, body: object = None) -> Any:
        if body is not None:
            self.bodies.append(body)
        name = path.partition("?")[0].removesuffix("/status")
        status, text = self.server(method, name, [], body, "application/merge-patch+json")
        return None if status == 404 else json.loads(text)


@pytest.mark.parametrize(
    ("ready", "deleted", "ends"),
    [
        ("Unknown", True, True),
        ("Unknown", False, False),
        # The kubelet answers and says that it is not ready: it ends its pods itself.
        ("False", True, False),
        ("True", True, False),
    ],
)
def test_only_deleted_pods_of_silent_nodes(ready: str, deleted: bool, ends: bool) -> None:
    site = Site(
        [node("w1", ready), node("w2", "True")], [pod("a", "w1", deleted=deleted), pod("b", "w2", deleted=True)]
    )
    assert collector.collect(site) == (["trainings/a on w1"] if ends else [])
    assert (f"{PODS}/a" in site.server.objects) is not ends
    assert f"{PODS}/b" in site.server.objects


def test_a_pod_is_failed_as_disrupted_before_it_is_deleted_by_its_uid() -> None:
    site = Site(
        [node("w1", "Unknown")], [pod("a", "w1", deleted=True), pod("over", "w1", deleted=True, phase="Failed")]
    )
    assert collector.collect(site) == ["trainings/a on w1", "trainings/over on w1"]
    status = site.bodies[0]["status"]
    assert status["phase"] == "Failed"
    assert [each["type"] for each in status["conditions"]] == ["DisruptionTarget"]
    assert site.bodies[1] == {"gracePeriodSeconds": 0, "preconditions": {"uid": "uid-a"}}
    assert len(site.bodies) == 3


def test_the_time_of_the_condition_is_as_the_server_wants_it() -> None:
    said = collector.failed(pod("a", "w1", deleted=True), datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    assert said["status"]["conditions"][0]["lastTransitionTime"] == "2026-01-02T03:04:05Z"
