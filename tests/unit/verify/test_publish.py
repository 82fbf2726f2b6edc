"""Receipts in the cluster, and as metrics."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import Any

import pytest

from tests.unit.apiserver import ApiServer
from trainyard.kube.api import Api
from trainyard.verify import publish as metrics
from trainyard.verify.publish import KEPT, LABEL, plan_publish, published

MAPS = "/api/v1/namespaces/trainyard-console/configmaps"
SPACE = {"/api/v1/namespaces/trainyard-console": {"metadata": {"name": "trainyard-console"}}}


def receipt(minute: int = 0, verdict: str = "pass", **changes: Any) -> dict[str, Any]:
    values = {
        "schema": 2,
        "verdict": verdict,
        "checks": [
            {"name": "nodes_ready", "result": "pass", "detail": "2"},
            {"name": "training", "run": 'a"b', "result": "fail", "detail": "no"},
            {"name": "dns", "result": "unknown", "detail": "?"},
        ],
        "trainings": [
            {"name": "m", "namespace": "t", "result": "passed", "accuracy": 0.9, "ended_at": "2026-11-23T14:00:00Z"}
        ],
        "measured": {"certificates": {"console": "2027-01-01T00:00:00+00:00"}},
        "wall_seconds": float(minute),
        "written_at": f"2026-11-23T14:{minute:02d}:30+00:00",
    }
    return {**values, **changes}


def names(server: ApiServer) -> list[str]:
    return sorted(path.rpartition("/")[2] for path in server.objects if path.startswith(MAPS))


def publish(server: ApiServer, one: dict[str, Any]) -> list[str]:
    plan = plan_publish(Api(server), one)
    plan.execute()
    return [step.what for step in plan.steps]


def test_a_receipt_is_published_once() -> None:
    server = ApiServer(SPACE)
    assert publish(server, receipt(1)) == ["Publish the receipt receipt-20261123t140130z"]
    # Other times and counters are no other receipt.
    assert publish(server, receipt(2)) == []
    assert publish(server, receipt(3, "fail")) == ["Publish the receipt receipt-20261123t140330z"]
    assert publish(server, receipt(4)) == ["Publish the receipt receipt-20261123t140430z"]
    made = server.objects[f"{MAPS}/receipt-20261123t140330z"]
    assert made["metadata"]["labels"][LABEL] == "failed"
    assert json.loads(made["data"]["receipt.json"]) == receipt(3, "fail")


def test_ten_are_kept() -> None:
    server = ApiServer(SPACE)
    for minute in range(KEPT + 3):
        publish(server, receipt(minute, ("pass", "fail")[minute % 2]))
    assert len(names(server)) == KEPT
    assert names(server)[0] == "receipt-20261123t140330z"


def test_one_that_cannot_be_read_is_another() -> None:
    broken = published(receipt(1))
    broken["data"] = {"receipt.json": "{"}
    assert len(publish(ApiServer({**SPACE, f"{MAPS}/{broken['metadata']['name']}": broken}), receipt(2))) == 1


def test_without_a_console_nobody_reads_it() -> None:
    assert publish(ApiServer(), receipt()) == []


@pytest.mark.parametrize(("verdict", "label"), [("pass", "passed"), ("fail", "failed"), ("unknown", "failed")])
def test_labels(verdict: str, label: str) -> None:
    made = published(receipt(0, verdict))
    assert made["metadata"]["labels"][LABEL] == label
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", made["metadata"]["name"])


def test_metrics_say_what_the_receipt_says() -> None:
    lines = metrics.render(receipt()).splitlines()
    assert "trainyard_verdict 1" in lines
    assert 'trainyard_check{check="nodes_ready",run=""} 1' in lines
    assert r'trainyard_check{check="training",run="a\"b"} 0' in lines
    assert 'trainyard_check{check="dns",run=""} -1' in lines
    assert 'trainyard_certificate_end_timestamp_seconds{name="console"} 1798761600' in lines
    assert 'trainyard_training_accuracy_ratio{namespace="t",run="m"} 0.90000000000000002' in lines
    assert 'trainyard_training_passed{namespace="t",run="m"} 1' in lines


def test_what_is_not_known_has_no_line() -> None:
    text = metrics.render(receipt(trainings=[{"name": "m", "namespace": "t", "result": "unknown"}], measured={}))
    assert "accuracy" not in text and "certificate" not in text and "training_end" not in text
    assert 'trainyard_training_passed{namespace="t",run="m"} 0' in text


def test_series_are_what_is_measured() -> None:
    same = metrics.series(metrics.render(receipt())), metrics.series(metrics.render(receipt(7, "fail")))
    assert same[0] == same[1]


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool (Debian's package prometheus) is not installed")
def test_promtool_takes_the_file() -> None:
    done = subprocess.run(
        ["promtool", "check", "metrics"],
        input=metrics.render(receipt()),
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
