"""The pods of a service: a new one where it is started anew, and what they have said where one ends or fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.apiserver import ApiServer
from tests.unit.training.test_service import DEPLOYMENT, RECORD, SPACE, Cluster, made, service
from trainyard.core.errors import TrainyardError


def pod(name: str = "mnist-6b7f5c4d8b-x7k2p", **status: Any) -> dict[str, Any]:
    labels = {"trainyard.dev/run": "mnist", "trainyard.dev/role": "server"}
    labels["batch.kubernetes.io/job-completion-index"] = "0"
    meta = {"name": name, "namespace": "trainings", "uid": "1", "creationTimestamp": "1", "labels": labels}
    return {"metadata": meta, "spec": {}, "status": status}


def test_a_restart_makes_a_new_pod_and_keeps_what_the_old_one_has_said(tmp_path: Path) -> None:
    server = made(tmp_path)
    first = server.objects[DEPLOYMENT]["spec"]["template"]
    attempt = server.objects[DEPLOYMENT]["metadata"]["annotations"]["trainyard.dev/attempt"]
    path = f"/api/v1/{SPACE}/pods/mnist-6b7f5c4d8b-x7k2p"
    server.objects[path] = pod(phase="Running", containerStatuses=[{"state": {"running": {}}}])
    server.objects[f"{path}/log"] = lambda _: "2026-11-21T12:00:00.5Z hello\n"
    plan = service(server, tmp_path).plan(restart=True)
    plan.execute()
    assert server.objects[DEPLOYMENT]["spec"]["template"] != first
    assert server.objects[DEPLOYMENT]["metadata"]["annotations"]["trainyard.dev/attempt"] != attempt
    assert plan.done[0] == "Keep the logs of mnist"
    assert (tmp_path / "trainings-mnist" / attempt / "mnist-6b7f5c4d8b-x7k2p.log").read_text() == "hello\n"
    assert service(server, tmp_path).plan().steps == []


def test_one_that_finds_no_gpu_says_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    why = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    why["message"] = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    server = ApiServer({f"/api/v1/{SPACE}/pods/mnist-6b7f5c4d8b-x7k2p": pod(phase="Pending", conditions=[why])})
    offers = {"capacity": {"nvidia.com/gpu": "1"}, "allocatable": {"nvidia.com/gpu": "1"}}
    server.objects["/api/v1/nodes/w1"] = {"metadata": {"name": "w1"}, "spec": {"unschedulable": True}, "status": offers}
    with pytest.raises(TrainyardError, match=r"Insufficient nvidia.com/gpu") as refused:
        service(server, tmp_path, start_timeout=1, gpus=1).plan().execute()
    assert "GPUs: w1: 1 of 1 free, cordoned" in refused.value.message


def test_one_that_never_answers_is_on_record_with_what_it_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    crashed = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 1}}}
    path = f"/api/v1/{SPACE}/pods/mnist-6b7f5c4d8b-x7k2p"
    server = ApiServer({path: pod(phase="Running", containerStatuses=[crashed])})
    server.objects[f"{path}/log"] = lambda query: (
        "2026-11-21T12:00:00.5Z no module named x\n" if ("timestamps", "true") in query else "no module named x\n"
    )
    with pytest.raises(TrainyardError, match=r"does not answer(.|\n)*no module named x"):
        service(server, tmp_path, start_timeout=1).plan().execute()
    found = json.loads(server.objects[RECORD]["data"]["result.json"])
    assert found["result"] == "running" and "it does not answer" in found["why"]
    assert [Path(path).read_text() for path in found["logs"]] == ["no module named x\n"]
    assert (tmp_path / "tokens" / "trainings-mnist").exists()
    assert "GPUs:" not in found["why"]
    # It answers now.
    answering = Cluster(server.objects)
    one = service(answering, tmp_path, start_timeout=1)
    one.plan().execute()
    assert "why" not in json.loads(answering.objects[RECORD]["data"]["result.json"])
    assert service(answering, tmp_path, start_timeout=1).plan().steps == []
