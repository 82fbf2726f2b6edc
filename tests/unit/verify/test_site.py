"""One whole run of the module's logic against an API server in memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.trainyard.kube.api import Api, KubeError
from ansible.module_utils.trainyard.verify import site as verify_site
from ansible.module_utils.trainyard.verify.site import Settings, Site

from tests.unit.apiserver import ApiServer
from tests.unit.verify.test_cluster import DIGEST, GOOD, IMAGE, node, pod
from tests.unit.verify.test_policies import DENY, OWN
from tests.unit.verify.test_training import RESULT

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


def test_receipt_is_written_once_and_again_only_for_a_difference(tmp_path: Path) -> None:
    path = tmp_path / "receipt.json"
    server = ApiServer(HEALTHY)
    _, plan = judge(server, receipt_path=str(path), started_at=1.0)
    assert [step.what for step in plan.steps] == [f"Write the receipt {path}."]
    plan.execute()
    assert json.loads(path.read_text())["verdict"] == "pass"

    server.objects["/api/v1/namespaces/kube-system/pods"] = {"items": [pod(restarts=1, ended="2026-11-21T11:00:00Z")]}
    slower = {"cp1": {**GOOD, "dns": {"ok": True, "milliseconds": 9}}, "w1": GOOD}
    _, plan = judge(server, receipt_path=str(path), started_at=99.0, probes=slower)
    assert not plan.changed

    server.objects["/api/v1/nodes"] = {"items": [node("cp1")]}
    site, plan = judge(server, receipt_path=str(path))
    assert plan.changed and plan.before["verdict"] == "pass" and plan.after["verdict"] == "fail"
    plan.execute()
    assert json.loads(path.read_text()) == site.receipt


def test_a_verdict_without_a_bundle_takes_its_digests_from_the_receipt(tmp_path: Path) -> None:
    path = str(tmp_path / "receipt.json")
    for made, verdict in ((None, "unknown"), ({IMAGE: DIGEST}, "pass"), (None, "pass"), ({IMAGE: "x"}, "fail")):
        site, plan = judge(ApiServer(HEALTHY), receipt_path=path, made_images=made)
        plan.execute()
        assert site.result()["verdict"] == verdict
    site, _ = judge(ApiServer(HEALTHY), receipt_path=path, made_images=None, locked_images={IMAGE: DIGEST})
    assert site.result()["verdict"] == "pass"


def test_a_run_that_was_left_alone_stays_so_in_a_verdict_by_itself(tmp_path: Path) -> None:
    live = {"metadata": {"creationTimestamp": "2026-11-21T11:00:00Z", "annotations": {}}}
    server = ApiServer({**HEALTHY, SETS: live, "/api/v1/namespaces/trainings/pods": {"items": []}})
    path, found = str(tmp_path / "receipt.json"), []
    for left, attempt in ((["m"], "first"), (None, "first"), (None, "another"), ([], "first")):
        server.objects[SETS]["metadata"]["annotations"]["trainyard.dev/attempt"] = attempt
        site, plan = judge(server, receipt_path=path, left_alone=left)
        plan.execute()
        found.append(site.receipt["trainings"][0]["left_alone"])
    assert found == [True, True, False, False]


def test_document_is_written_every_time(tmp_path: Path) -> None:
    document = tmp_path / "document.json"
    for _ in range(2):
        site, plan = judge(ApiServer(HEALTHY), document_path=str(document))
        assert plan.changed
        plan.execute()
        assert json.loads(document.read_text()) == site.receipt
