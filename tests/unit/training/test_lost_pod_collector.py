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


def pod(name: str, on: str, *, deleted: bool, phase: str = "Running", run: str = "mnist") -> dict[str, Any]:
    labels = {"trainyard.dev/role": "worker", "trainyard.dev/run": run} if run else {}
    meta: dict[str, Any] = {"name": name, "namespace": "trainings", "uid": f"uid-{name}", "labels": labels}
    if deleted:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": meta, "spec": {"nodeName": on}, "status": {"phase": phase}}


class Site:
    """The calls of the collector, on a server with these nodes and pods, and a namespace that is not of trainings.

    :param refused: path -> status that every call to it gets.
    """

    def __init__(
        self, nodes: list[dict[str, Any]], pods: list[dict[str, Any]], refused: dict[str, int] | None = None
    ) -> None:
        marked = {"metadata": {"name": "trainings", "labels": {"trainyard.dev/trainings": "true"}}}
        other = {"metadata": {"name": "kube-system", "labels": {}}}
        self.server = ApiServer(
            {f"/api/v1/nodes/{each['metadata']['name']}": each for each in nodes}
            | {f"/api/v1/namespaces/{each['metadata']['name']}": each for each in (marked, other)}
            | {f"{PODS}/{each['metadata']['name']}": each for each in pods}
            | {"/api/v1/namespaces/kube-system/pods/dns": pod("dns", "w1", deleted=True)}
        )
        self.refused = refused or {}
        self.bodies: list[Any] = []

    @property
    def pods(self) -> set[str]:
        return {path.rpartition("/")[2] for path in self.server.objects if "/pods/" in path}

    def call(self, method: str, path: str, body: object = None) -> Any:
        path, _, query = path.partition("?")
        if path in self.refused:
            raise OSError(f"status {self.refused[path]}")
        if body is not None:
            self.bodies.append(body)
        status, text = self.server(method, path.removesuffix("/status"), [], body, "application/merge-patch+json")
        answer = json.loads(text)
        if query:
            key, _, value = query.removeprefix("labelSelector=").partition("=")
            answer["items"] = [each for each in answer["items"] if _has(each["metadata"]["labels"], key, value)]
        return None if status == 404 else answer


def _has(labels: dict[str, str], key: str, value: str) -> bool:
    return key in labels and value in ("", labels[key])


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
    assert collector.collect(site) == (["ended trainings/a on w1"] if ends else [])
    assert site.pods == {"b", "dns"} | (set() if ends else {"a"})


def test_a_pod_is_failed_as_disrupted_before_it_is_deleted_by_its_uid() -> None:
    site = Site(
        [node("w1", "Unknown")], [pod("a", "w1", deleted=True), pod("over", "w1", deleted=True, phase="Failed")]
    )
    assert collector.collect(site) == ["ended trainings/a on w1", "ended trainings/over on w1"]
    status = site.bodies[0]["status"]
    assert status["phase"] == "Failed"
    assert [each["type"] for each in status["conditions"]] == ["DisruptionTarget"]
    assert site.bodies[1] == {"gracePeriodSeconds": 0, "preconditions": {"uid": "uid-a"}}
    assert len(site.bodies) == 3


def test_the_time_of_the_condition_is_as_the_server_wants_it() -> None:
    said = collector.failed(pod("a", "w1", deleted=True), datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    assert said["status"]["conditions"][0]["lastTransitionTime"] == "2026-01-02T03:04:05Z"


def test_pods_that_are_of_no_training_are_left() -> None:
    site = Site([node("w1", "Unknown")], [pod("mine", "w1", deleted=True), pod("other", "w1", deleted=True, run="")])
    assert collector.collect(site) == ["ended trainings/mine on w1"]
    assert site.pods == {"other", "dns"}


def test_a_refusal_is_said_and_the_others_are_ended() -> None:
    pods = [pod("a", "w1", deleted=True), pod("b", "w1", deleted=True)]
    site = Site([node("w1", "Unknown")], pods, {f"{PODS}/a/status": 409})
    assert collector.collect(site) == ["trainings/a on w1: status 409", "ended trainings/b on w1"]
    assert collector.collect(Site([node("w1", "Unknown")], pods, {PODS: 403})) == ["trainings: status 403"]
