"""Waiting for a node's GPUs, at an API server whose state changes as time passes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.apiserver import ApiServer
from trainyard.core.errors import WaitError
from trainyard.core.waiter import Clock
from trainyard.kube.api import Api
from trainyard.kube.gpu_offer import SETTLE, Offer, observe, wait_for_gpus

PODS, REVISIONS = "/api/v1/namespaces/kube-system/pods", "/apis/apps/v1/namespaces/kube-system/controllerrevisions"
SETS = "/apis/apps/v1/namespaces/kube-system/daemonsets"
NODE = "/api/v1/nodes/w1"
OLD, NEW = "1970-01-01T00:00:00Z", "1970-01-01T01:00:00Z"
"""The clock below begins at the second."""

State = dict[str, Any]


def node(capacity: int, allocatable: int) -> State:
    return {
        "metadata": {"name": "w1"},
        "status": {"capacity": {"nvidia.com/gpu": capacity}, "allocatable": {"nvidia.com/gpu": allocatable}},
    }


def pod(name: str = "plugin", *, version: str = "2", ready: bool = True, since: str = OLD, **more: Any) -> State:
    labels = {"controller-revision-hash": version, "trainyard.dev/gpu-setting": "whole"}
    status: State = {
        "conditions": [{"type": "Ready", "status": str(ready), "lastTransitionTime": since}],
        "containerStatuses": [
            {"restartCount": 0, "state": {} if ready else {"waiting": {"reason": "CrashLoopBackOff"}}}
        ],
    }
    meta = {"name": name, "namespace": "kube-system", "labels": labels, "creationTimestamp": since, **more}
    return {"metadata": meta, "spec": {"nodeName": "w1"}, "status": status}


def server(seen: State, *pods: State, generation: int = 2) -> ApiServer:
    made = {"metadata": {"name": "plugin", "generation": generation}, "status": {"observedGeneration": 2}}
    revisions = [
        {"metadata": {"name": f"whole-{each}", "labels": {"controller-revision-hash": str(each)}}, "revision": each}
        for each in (2, 1)
    ]
    listed = {PODS: {"items": list(pods)}, REVISIONS: {"items": revisions}, SETS: {"items": [made]}}
    return ApiServer({NODE: seen, **{path: lambda query, it=it: json.dumps(it) for path, it in listed.items()}})


class Passing(Clock):
    """Goes on by sleeping alone, and does what is to happen then."""

    def __init__(self, happens: dict[int, Callable[[], None]]) -> None:
        self.now, self.happens = 0.0, happens

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return 3600 + self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.happens.get(int(self.now), lambda: None)()


def wait(api: ApiServer, wanted: int = 2, happens: dict[int, Any] | None = None, **more: Any) -> tuple[Offer, float]:
    """What was found, and after how many seconds."""
    states = {second: (lambda to=to: api.objects.update(to.objects)) for second, to in (happens or {}).items()}
    clock = Passing(states)
    return wait_for_gpus(Api(api), "w1", "whole", wanted, timeout=60, clock=clock, **more), clock.now


def test_a_node_that_has_them_is_not_waited_for() -> None:
    assert wait(server(node(2, 2), pod()))[1] == 0


def test_a_plugin_that_has_just_started_has_to_tell_the_node_first() -> None:
    found, seconds = wait(server(node(2, 2), pod(since=NEW)))
    assert (found.allocatable, seconds) == (2, SETTLE)


@pytest.mark.parametrize(
    ("pods", "said"),
    [
        ((), "has no pod on this node"),
        ((pod(version="1"),), "has an older version"),
        ((pod(ready=False),), "is not ready (CrashLoopBackOff)"),
        ((pod(deletionTimestamp=NEW),), "has no pod on this node"),
    ],
)
def test_the_capacity_of_a_plugin_that_is_gone_is_not_taken(pods: tuple[State, ...], said: str) -> None:
    """The kubelet keeps it for minutes, and says that pods can have none."""
    for capacity, allocatable in ((2, 2), (2, 0)):
        api = server(node(capacity, allocatable), *pods)
        assert said in observe(Api(api), "w1", "whole").fault
        with pytest.raises(WaitError) as error:
            wait(api)
        assert said in str(error.value)


def test_a_plugin_that_is_replaced_is_no_unhealthy_gpu() -> None:
    old, gone, new = (
        server(node(2, 2), pod("a", version="1")),
        server(node(2, 0)),
        pod("b", since="1970-01-01T01:00:20Z"),
    )
    happens = {5: gone, 20: server(node(2, 0), new), 25: server(node(2, 2), new)}
    found, seconds = wait(old, happens=happens)
    assert (found.capacity, found.allocatable, seconds) == (2, 2, 20 + SETTLE)


def test_a_change_that_kubernetes_has_not_seen_yet_is_waited_for() -> None:
    api = server(node(2, 2), pod(), generation=3)
    assert "has not processed the last change" in observe(Api(api), "w1", "whole").fault
    assert wait(api, happens={4: server(node(2, 2), pod())})[1] == 4


def test_a_gpu_that_stays_unhealthy_is_a_result() -> None:
    found, seconds = wait(server(node(2, 1), pod()))
    assert (found.capacity, found.allocatable, seconds) == (2, 1, SETTLE)


def test_all_healthy_is_waited_for_where_it_is_asked() -> None:
    assert wait(server(node(2, 1), pod()), happens={30: server(node(2, 2), pod())}, all_healthy=True)[1] == 30
    with pytest.raises(WaitError, match="offers 1 of 2 GPUs to pods, and should offer 2"):
        wait(server(node(2, 1), pod()), all_healthy=True)


def test_another_number_is_an_error_and_none_waits_for_the_plugin() -> None:
    with pytest.raises(WaitError, match="offers 8 of 8 GPUs to pods, and should offer 2"):
        wait(server(node(8, 8), pod()))
    assert wait(server(node(0, 0), pod()), wanted=0)[1] == 0
