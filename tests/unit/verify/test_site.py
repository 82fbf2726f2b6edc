"""One whole run of the module's logic against an API server in memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.apiserver import ApiServer
from tests.unit.verify.test_cluster import DIGEST, GOOD, IMAGE, node, pod
from tests.unit.verify.test_policies import DENY, OWN
from tests.unit.verify.test_training import RESULT
from trainyard.kube.api import Api, KubeError
from trainyard.verify import site as verify_site
from trainyard.verify.site import Settings, Site

POLICIES = "/apis/networking.k8s.io/v1/namespaces/trainings/networkpolicies"
SETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/trainings/jobsets/m"
HEALTHY: dict[str, Any] = {
    "/readyz": "ok",
    "/api/v1/nodes": {"items": [node("cp1"), node("w1")]},
    "/api/v1/namespaces/kube-system/pods": {"items": [pod()]},
    "/api/v1/namespaces/trainings/pods": {"items": []},
    POLICIES: {"items": [DENY, OWN]},
    "/api/v1/namespaces/trainings/configmaps/m-result": {"data": {"result.json": json.dumps(RESULT)}},
}

UP = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def settings(**changes: Any) -> Settings:
    values = {
        "kubeconfig": "/kubeconfig",
        "nodes": ["cp1", "w1"],
        "kubelet_version": "1.36.3",
        "containerd_version": "2.3.4",
        "system_namespaces": ["kube-system"],
        "made_images": {IMAGE: DIGEST},
        "probes": {"cp1": GOOD, "w1": {**GOOD, "changed": False, "failed": False}},
        "trainings": [{"name": "m", "namespace": "trainings", "topology": "parameter_server", "accuracy_bound": 0.9}],
        "left_alone": None,
        "accuracy_bound": 0.9,
        "receipt_path": "",
        "document_path": "",
        "started_at": 0.0,
        "settle_timeout": 0.0,
    }
    return Settings(**{**values, **changes})


def judge(server: ApiServer, **changes: Any) -> tuple[Site, Any]:
    site = Site(settings(**changes), lambda _: Api(server))
    plan = site.plan()
    assert not server.writes, "verify only reads"
    return site, plan


def test_healthy_site_passes() -> None:
    site, plan = judge(ApiServer(HEALTHY), started_at=1.0)
    result = site.result()
    assert (result["verdict"], result["problems"], plan.changed) == ("pass", [], False)
    assert result["receipt"]["trainings"][0]["steps"] == 2000
    assert result["receipt"]["versions"]["kubelet"] == "1.36.3"
    assert result["receipt"]["measured"]["probes"]["w1"] == GOOD
    assert result["receipt"]["wall_seconds"] > 0


@pytest.mark.parametrize(
    ("path", "answer", "verdict", "check"),
    [
        ("/readyz", 0, "unknown", "api_ready"),
        ("/readyz", 403, "unknown", "api_ready"),
        ("/readyz", 500, "fail", "api_ready"),
        ("/api/v1/nodes", 403, "unknown", "nodes_ready"),
        ("/api/v1/nodes", {"items": [node("cp1")]}, "fail", "nodes_ready"),
        ("/api/v1/nodes", {"items": [node("cp1"), node("w1", kubelet="v1.36.1")]}, "fail", "node_versions"),
        ("/api/v1/namespaces/kube-system/pods", {"items": []}, "fail", "system_pods"),
        ("/api/v1/namespaces/trainings/pods", {"items": [pod()]}, "fail", "released m"),
        ("/api/v1/namespaces/trainings/pods", 403, "unknown", "images_locked"),
        (
            "/apis/networking.k8s.io/v1/namespaces/trainings/networkpolicies",
            {"items": []},
            "fail",
            "network_policies m",
        ),
        ("/api/v1/namespaces/trainings/configmaps/m-result", 404, "unknown", "training m"),
        ("/api/v1/namespaces/trainings/configmaps/m-result", {"data": {}}, "unknown", "training m"),
        ("/api/v1/namespaces/trainings/configmaps/m-result", {"data": {"result.json": "{"}}, "unknown", "isolation m"),
    ],
)
def test_one_thing_wrong(path: str, answer: Any, verdict: str, check: str) -> None:
    site, _ = judge(ApiServer({**HEALTHY, path: answer}))
    result = site.result()
    assert result["verdict"] == verdict
    assert any(problem.startswith(f"{check}: {verdict}: ") for problem in result["problems"])


def test_silent_server_is_asked_one_thing_only() -> None:
    server = ApiServer({**HEALTHY, "/readyz": 0})
    judge(server)
    assert server.calls == ["GET /readyz"]


@pytest.mark.parametrize(("made", "verdict"), [({IMAGE: "sha256:1"}, "fail"), (None, "pass")])
def test_a_verdict_without_a_bundle_knows_no_newer_images_of_trainings(tmp_path: Path, made: Any, verdict: str) -> None:
    one = {
        **pod("Succeeded"),
        "metadata": {"name": "m-0", "namespace": "trainings"},
        "spec": {"containers": [{"name": "main", "image": f"mirror:5000/v2/calico/node@{DIGEST}"}]},
    }
    server = ApiServer({**HEALTHY, "/api/v1/namespaces/trainings/pods": {"items": [one]}})
    server.objects["/api/v1/namespaces/kube-system/pods"] = {"items": [{"metadata": pod()["metadata"], "status": UP}]}
    path = tmp_path / "receipt.json"
    path.write_text(json.dumps({"schema": 2, "made_images": {IMAGE: "sha256:1"}}))
    site, _ = judge(server, receipt_path=str(path), made_images=made)
    assert site.result()["verdict"] == verdict


@pytest.mark.parametrize("planning", [True, False])
def test_no_kubeconfig_is_unknown(planning: bool) -> None:
    def missing(path: str) -> Api:
        raise KubeError(f"The kubeconfig {path} cannot be used.", status=0)

    site = Site(settings(probes={}, planning=planning, settle_timeout=60.0), missing)
    site.plan()
    assert site.result()["verdict"] == "unknown"
    assert {check["result"] for check in site.receipt["checks"]} == {"unknown"}


def test_site_without_training() -> None:
    server = ApiServer({path: answer for path, answer in HEALTHY.items() if "trainings" not in path})
    site, _ = judge(server, trainings=[])
    assert site.result()["verdict"] == "pass"
    assert not any("trainings" in call for call in server.calls)


def test_what_settles_is_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    server = ApiServer({**HEALTHY, "/api/v1/namespaces/trainings/pods": {"items": [pod()]}})
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            server.objects["/api/v1/namespaces/trainings/pods"] = {"items": []}

    monkeypatch.setattr(verify_site.time, "sleep", sleep)
    site, _ = judge(server, settle_timeout=60.0)
    assert (site.result()["verdict"], len(slept)) == ("pass", 2)


@pytest.mark.parametrize(
    ("changes", "options"),
    [
        ({"/api/v1/namespaces/trainings/pods": {"items": [pod()]}}, {"planning": True}),
        ({"/api/v1/namespaces/trainings/pods": {"items": [pod()]}}, {"accuracy_bound": 0.99}),
        ({"/api/v1/namespaces/trainings/pods": {"items": [pod()]}}, {"probes": {}}),
    ],
)
def test_no_waiting_in_check_mode_or_for_what_cannot_settle(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], options: dict[str, Any]
) -> None:
    monkeypatch.setattr(verify_site.time, "sleep", lambda _: pytest.fail("slept"))
    site, _ = judge(ApiServer({**HEALTHY, **changes}), settle_timeout=60.0, **options)
    assert site.result()["verdict"] == "fail"
