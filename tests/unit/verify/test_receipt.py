"""What a verdict writes, and what it takes from the receipt of the run before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.apiserver import ApiServer
from tests.unit.verify.test_cluster import DIGEST, GOOD, IMAGE, node, pod
from tests.unit.verify.test_site import HEALTHY, SETS, judge

FIRST = "20261121T120000Z-0001"
EARLIER = "20261121T110000Z-0000"


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
    for left, attempt in (
        (["m"], FIRST),
        (None, FIRST),
        (None, EARLIER),
        ([], FIRST),
    ):
        server.objects[SETS]["metadata"]["annotations"]["trainyard.dev/attempt"] = attempt
        site, plan = judge(server, receipt_path=path, left_alone=left)
        plan.execute()
        found.append(site.receipt["trainings"][0]["left_alone"])
    assert found == [True, True, False, False]


@pytest.mark.parametrize(("asked", "other"), [("a", False), ("b", True), ("", False)])
def test_a_verdict_by_itself_sees_that_a_run_goes_on_by_another_description(asked: str, other: bool) -> None:
    live = {"kind": "JobSet", "metadata": {"annotations": {}, "creationTimestamp": "2026-11-21T11:59:00Z"}}
    record = {"result": "running", "description_hash": "a"}
    path = "/api/v1/namespaces/trainings/configmaps/m-result"
    server = ApiServer({**HEALTHY, SETS: live, path: {"data": {"result.json": json.dumps(record)}}})
    training = {"name": "m", "namespace": "trainings", "topology": "parameter_server", "description_hash": asked}
    site, _ = judge(server, trainings=[training])
    assert site.receipt["trainings"][0]["left_alone"] is other
    assert any("its description differs" in warning for warning in site.receipt["warnings"]) is other


def test_document_is_written_every_time(tmp_path: Path) -> None:
    document = tmp_path / "document.json"
    for _ in range(2):
        site, plan = judge(ApiServer(HEALTHY), document_path=str(document))
        assert plan.changed
        plan.execute()
        assert json.loads(document.read_text()) == site.receipt
