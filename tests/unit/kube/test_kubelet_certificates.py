"""Approving requests, and waiting until kubelets serve, against an API server in memory."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.apiserver import ApiServer
from tests.unit.kube.requests_of_kubelets import pem, request
from trainyard.core.errors import WaitError
from trainyard.core.waiter import Clock
from trainyard.kube.api import Api
from trainyard.kube.certificate_requests import KubeletHost, look, plan_approvals, wait_until_served

HOSTS = {"worker1": KubeletHost.of(["worker1"], ["10.1.0.21"])}
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
HEALTH = "/api/v1/nodes/worker1/proxy/healthz"


class Passing(Clock):
    """Sleeps by counting."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Cluster(ApiServer):
    """Serves the kubelet's health from the moment in which its request was approved."""

    def __init__(self, *requests: dict[str, Any], serves: bool = False) -> None:
        found = {f"{REQUESTS}/{each['metadata']['name']}": each for each in requests}
        super().__init__({**found, HEALTH: {"ok": True} if serves else 500})

    def __call__(self, method: str, path: str, query: list[tuple[str, str]], body: Any, kind: str) -> tuple[int, str]:
        if method == "PUT":
            self.calls.append(f"PUT {path}")
            self.objects[path.removesuffix("/approval")] = body
            self.objects[HEALTH] = {"ok": True}
            return 200, "{}"
        return super().__call__(method, path, query, body, kind)


def test_a_good_request_is_approved_and_the_node_serves() -> None:
    asked = request()
    server = Cluster(asked)
    plan, seen = plan_approvals(Api(server), HOSTS, ["worker1"], timeout=5, clock=Passing())
    assert [step.what for step in plan.steps] == ["Approve the serving certificate of worker1"]
    assert server.writes == []
    plan.execute()
    assert server.writes == [f"PUT {REQUESTS}/csr-1/approval"]
    kept = server.objects[f"{REQUESTS}/csr-1"]
    assert [(each["type"], each["status"]) for each in kept["status"]["conditions"]] == [("Approved", "True")]
    assert kept["spec"] == asked["spec"] and kept["metadata"]["resourceVersion"] == "7"
    wait_until_served(Api(server), HOSTS, ["worker1"], timeout=5, clock=Passing())
    assert seen.left == {}


def test_nothing_is_done_where_all_serve() -> None:
    server = Cluster(serves=True)
    plan, _ = plan_approvals(Api(server), HOSTS, ["worker1"], timeout=5, clock=Passing())
    assert not plan.changed


def test_a_foreign_address_stays_pending_and_is_told() -> None:
    server = Cluster(request(body=pem(addresses=("10.9.9.9",))), serves=True)
    plan, seen = plan_approvals(Api(server), HOSTS, ["worker1"], timeout=5, clock=Passing())
    assert not plan.changed
    assert seen.left == {"csr-1": "worker1: it asks for 10.9.9.9, which the inventory does not give worker1"}


@pytest.mark.parametrize(
    ("requests", "told"),
    [
        ([], "worker1: it has not requested a certificate"),
        ([request(body=pem(addresses=("10.9.9.9",)))], "worker1: it asks for 10.9.9.9, which the inventory"),
    ],
)
def test_a_node_that_cannot_serve_is_named(requests: list[Any], told: str) -> None:
    with pytest.raises(WaitError, match=told):
        plan_approvals(Api(Cluster(*requests)), HOSTS, ["worker1"], timeout=5, clock=Passing())


class Closed(Cluster):
    """Answers as an API server whose connections to the kubelet's port are dropped."""

    def __call__(self, method: str, path: str, query: list[tuple[str, str]], body: Any, kind: str) -> tuple[int, str]:
        if path == HEALTH:
            message = "error trying to reach service: dial tcp 10.1.0.21:10250: i/o timeout"
            return 503, json.dumps({"kind": "Status", "message": message})
        return super().__call__(method, path, query, body, kind)


def test_a_closed_port_of_the_kubelet_is_named() -> None:
    with pytest.raises(WaitError, match=r"worker1: the API server does not reach its kubelet\. Open 10250/tcp for the"):
        wait_until_served(Api(Closed()), HOSTS, ["worker1"], timeout=5, clock=Passing())


def test_a_check_run_waits_for_nobody() -> None:
    clock = Passing()
    plan, _ = plan_approvals(Api(Cluster(request())), HOSTS, [], timeout=5, clock=clock)
    assert plan.changed and clock.monotonic() == 0.0


def test_what_is_decided_is_let_be() -> None:
    denied = {**request(), "status": {"conditions": [{"type": "Denied", "status": "True"}]}}
    assert look(Api(Cluster(denied, serves=True)), HOSTS, ["worker1"]).good == []
