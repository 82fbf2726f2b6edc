"""Draining a node of an API server that is a dictionary of pods and a node."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.apiserver import ApiServer
from trainyard.core.errors import TrainyardError, WaitError
from trainyard.kube import nodes
from trainyard.kube.api import Api, KubeError

NODE, PODS = "/api/v1/nodes/w1", "/api/v1/namespaces/a/pods"


class Server(ApiServer):
    """One node `w1` and pods; `refusals` maps a pod's name to what its evictions get before one succeeds."""

    def __init__(self, *pods: dict[str, Any], cordoned: bool = False, **refusals: list[int]) -> None:
        super().__init__({f"{PODS}/{pod['metadata']['name']}": pod for pod in pods})
        self.objects[NODE] = {"metadata": {"name": "w1"}, "spec": {"unschedulable": True} if cordoned else {}}
        self.refusals = {f"{PODS}/{name}/eviction": list(statuses) for name, statuses in refusals.items()}

    @property
    def pods(self) -> set[str]:
        return {path.removeprefix(f"{PODS}/") for path in self.objects if path.startswith(PODS)}

    @property
    def cordoned(self) -> bool:
        return bool(self.objects[NODE]["spec"].get("unschedulable"))


def pod(name: str, *, owner: str = "ReplicaSet", node: str = "w1", **more: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "a", "uid": f"uid-{name}", "annotations": more.get("annotations") or {}}
    meta["ownerReferences"] = [{"kind": owner, "controller": True}]
    spec = {"nodeName": node, "volumes": more.get("volumes") or []}
    return {"metadata": meta, "spec": spec, "status": {"phase": more.get("phase", "Running")}}


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that only sleeping moves."""
    now = [0.0]
    monkeypatch.setattr(nodes.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(nodes.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    return now


def test_drain_moves_what_must_move_and_nothing_else() -> None:
    server = Server(
        pod("web"),
        pod("agent", owner="DaemonSet"),
        pod("static", owner="Node", annotations={nodes.MIRROR: "x"}),
        pod("done", phase="Succeeded"),
        pod("elsewhere", node="w2"),
    )
    plan = nodes.plan_drain(Api(server), nodes.Drain("w1"))
    assert [step.what for step in plan.steps] == ["Cordon w1", "Evict a/web"]
    assert server.writes == []
    plan.execute()
    assert server.cordoned
    assert server.pods == {"agent", "static", "done", "elsewhere"}
    assert not nodes.plan_drain(Api(server), nodes.Drain("w1")).changed


@pytest.mark.parametrize("status", [429, 503, 0])
def test_a_refusal_that_passes_is_tried_again(status: int, clock: list[float]) -> None:
    server = Server(pod("web"), pod("db"), web=[status, status])
    nodes.plan_drain(Api(server), nodes.Drain("w1")).execute()
    assert not server.pods
    assert server.cordoned
    assert clock[0] == pytest.approx(3 * nodes.LOOK_AGAIN_SECONDS)


@pytest.mark.parametrize("cordoned_before", [True, False])
def test_pods_that_are_left_are_named_and_only_the_own_cordon_is_taken_back(
    cordoned_before: bool, clock: list[float]
) -> None:
    server = Server(pod("web"), pod("db"), cordoned=cordoned_before, web=[429] * 99)
    plan = nodes.plan_drain(Api(server), nodes.Drain("w1", timeout=20))
    with pytest.raises(WaitError, match=r"a/web \(eviction of a/web: no POST of .*web/eviction") as caught:
        plan.execute()
    assert caught.value.facts["pods"] == ["a/web"]
    assert clock[0] <= 20
    assert server.cordoned is cordoned_before


def test_another_refusal_ends_the_drain_and_the_cordon() -> None:
    server = Server(pod("web"), web=[403])
    with pytest.raises(KubeError, match="status 403"):
        nodes.plan_drain(Api(server), nodes.Drain("w1")).execute()
    assert not server.cordoned


def test_data_on_the_node_is_lost_only_when_that_is_allowed() -> None:
    server = Server(pod("web", volumes=[{"name": "scratch", "emptyDir": {}}]))
    with pytest.raises(TrainyardError, match="a/web"):
        nodes.plan_drain(Api(server), nodes.Drain("w1"))
    assert server.writes == []
    nodes.plan_drain(Api(server), nodes.Drain("w1", delete_empty_dir=True)).execute()
    assert not server.pods
    memory = Server(pod("web", volumes=[{"name": "shm", "emptyDir": {"medium": "Memory"}}]))
    assert nodes.plan_drain(Api(memory), nodes.Drain("w1")).changed


def test_uncordon_takes_back_the_own_cordon_only() -> None:
    server = Server()
    nodes.plan_drain(Api(server), nodes.Drain("w1")).execute()
    nodes.plan_uncordon(Api(server), "w1").execute()
    assert not server.cordoned
    assert not nodes.plan_uncordon(Api(Server(cordoned=True)), "w1").changed


def test_a_cordon_leaves_the_pods_and_is_taken_back() -> None:
    server = Server(pod("web"))
    plan = nodes.plan_cordon(Api(server), "w1")
    assert [step.what for step in plan.steps] == ["Cordon w1"]
    plan.execute()
    assert server.cordoned
    assert server.pods == {"web"}
    assert not nodes.plan_cordon(Api(server), "w1").changed
    nodes.plan_uncordon(Api(server), "w1").execute()
    assert not server.cordoned


def test_a_node_that_is_not_there_is_refused() -> None:
    with pytest.raises(TrainyardError, match="no node w9"):
        nodes.plan_drain(Api(Server()), nodes.Drain("w9"))


def test_a_cordon_that_cannot_be_taken_back_does_not_hide_why_the_drain_failed() -> None:
    class Gone(Server):
        """Refuses the eviction, and answers nothing after it."""

        gone = False

        def __call__(self, method: str, path: str, *rest: Any) -> tuple[int, str]:
            if self.gone:
                return 0, "connection refused"
            answer = super().__call__(method, path, *rest)
            self.gone = path.endswith("/eviction")
            return answer

    with pytest.raises(KubeError) as caught:
        nodes.plan_drain(Api(Gone(pod("web"), web=[403])), nodes.Drain("w1")).execute()
    assert "eviction of a/web" in caught.value.message and "w1 is still cordoned: " in caught.value.message
    assert caught.value.remedy.endswith("Then uncordon w1.") and isinstance(caught.value.__cause__, KubeError)
