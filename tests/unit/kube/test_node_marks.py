"""The marks of nodes: what is missing is set, and nothing else is touched."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.apiserver import ApiServer
from trainyard.kube.api import Api
from trainyard.kube.nodes import CONTROL_PLANE, HOSTNAME, LABELS, plan_marks

WITHOUT = {f"taint {CONTROL_PLANE}:NoSchedule of node cp1": "missing"}
TAINT = {"key": CONTROL_PLANE, "effect": "NoSchedule"}
OTHER = {"key": "nvidia.com/gpu", "effect": "NoSchedule", "value": "x"}


def node(name: str, labels: dict[str, str], *taints: dict[str, str]) -> dict[str, Any]:
    meta = {"name": name, "resourceVersion": "7", "labels": {HOSTNAME: name, **labels}}
    return {"kind": "Node", "metadata": meta, "spec": {"taints": list(taints)} if taints else {}}


def server(*nodes: dict[str, Any]) -> ApiServer:
    return ApiServer({f"/api/v1/nodes/{each['metadata']['name']}": each for each in nodes})


MARKED = node("cp1", dict(LABELS), OTHER, TAINT)
WORKER = node("worker1", {"mine": "1"})


@pytest.mark.parametrize(
    ("nodes", "schedulable", "expected"),
    [
        ([MARKED, WORKER], False, {}),
        ([node("cp1", dict(LABELS), OTHER), WORKER], False, WITHOUT),
        ([node("cp1", dict(LABELS), {**TAINT, "effect": "NoExecute"})], False, WITHOUT),
        ([node("cp1", dict(LABELS))], True, {}),
        ([node("cp1", {}, TAINT)], False, {f"label {key} of node cp1": "missing" for key in LABELS}),
        ([node("worker1", {HOSTNAME: "other"})], False, {f"label {HOSTNAME} of node worker1": "other"}),
        ([node("stranger", {HOSTNAME: "other"})], False, {}),
        ([], False, {}),
    ],
)  # fmt: skip
def test_what_is_missing(nodes: list[dict[str, Any]], schedulable: bool, expected: dict[str, str]) -> None:
    api = server(*nodes)
    plan = plan_marks(Api(api), ["cp1", "worker1"], ["cp1"], schedulable=schedulable)
    assert plan.before == expected and plan.changed == bool(expected)
    assert not api.writes


def test_it_is_set_beside_what_others_have_set() -> None:
    api = server(node("cp1", {"mine": "1"}, OTHER), WORKER)
    plan_marks(Api(api), ["cp1", "worker1"], ["cp1"]).execute()
    found = api.objects["/api/v1/nodes/cp1"]
    assert found["spec"]["taints"] == [OTHER, TAINT]
    assert found["metadata"]["labels"] == {HOSTNAME: "cp1", "mine": "1", **LABELS}
    assert api.writes == ["PATCH /api/v1/nodes/cp1"]
    assert not plan_marks(Api(api), ["cp1", "worker1"], ["cp1"]).changed
