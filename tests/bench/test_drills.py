"""Tests of the evaluation of the chiefs' events by a drill."""

from __future__ import annotations

import subprocess
from typing import Any

import cuts
import drill_kinds
import drills
import mishaps
import pytest
from drills import longest_pause, lost
from timed import BenchError

from tests.unit.apiserver import ApiServer
from trainyard.kube.api import Api

STEPS = [
    {"event": "step", "step": step, "time": time}
    for step, time in ((20, 1.0), (40, 2.0), (60, 3.0), (40, 11.0), (60, 12.0), (80, 13.0))
]


def test_the_longest_pause_ends_with_a_step_that_was_never_done_before() -> None:
    assert longest_pause(STEPS, 2.5) == 10.0
    assert longest_pause(STEPS, 5.0) == 8.0
    assert longest_pause(STEPS[:3], 0.5) == 1.0


def test_lost_steps_are_those_between_the_checkpoint_and_what_had_been_reported() -> None:
    assert lost(STEPS, {"step": 30, "time": 10.0}) == 30
    assert lost(STEPS, {"step": 60, "time": 10.0}) == 0


CUT = 100.0


def checkpoint(epoch: int, time: float) -> dict[str, Any]:
    return {"event": "checkpoint", "time": time, "path": f"/logs/x/checkpoints/{epoch:06d}/ckpt-{time:.0f}"}


def two_chiefs() -> list[dict[str, Any]]:
    """Return events of two chiefs: one saves and trains until 190 s, cut off at 100 s; then another takes over."""
    return [
        {"event": "start", "time": 10.0},
        checkpoint(1, 90.0),
        *({"event": "step", "step": int(time), "time": time} for time in (95.0, 140.0, 189.0)),
        checkpoint(1, 185.0),
        {"event": "start", "time": 190.0},
        checkpoint(2, 200.0),
    ]


def test_a_chief_that_was_cut_off_and_was_overtaken_has_written_nothing_afterwards() -> None:
    cuts.require_one_writer(two_chiefs(), CUT)


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ([*two_chiefs(), checkpoint(1, 193.0)], "saved 3.0 s after"),
        ([each for each in two_chiefs() if each["event"] != "step" or each["time"] < CUT], "did not continue"),
        (two_chiefs()[:4], "No other chief"),
    ],
    ids=["wrote", "stood still", "alone"],
)
def test_a_cut_that_proves_nothing_fails(events: list[dict[str, Any]], why: str) -> None:
    with pytest.raises(BenchError, match=why):
        cuts.require_one_writer(events, CUT)


def pod(role: str, index: int, node: str) -> dict[str, Any]:
    labels = {mishaps.INDEX_LABEL: str(index), "role": role}
    return {"metadata": {"name": f"{role}-{index}", "labels": labels}, "spec": {"nodeName": node},
            "status": {"phase": "Running"}}  # fmt: skip


def test_a_node_without_the_chief_is_chosen_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = [pod("chief", 0, "worker1"), pod("worker", 0, "worker1"), pod("worker", 1, "worker2")]
    watched = mishaps.Watched(None, drills.Training)  # type: ignore[arg-type]
    monkeypatch.setattr(
        watched, "pods", lambda role: [each for each in pods if each["metadata"]["labels"]["role"] == role]
    )
    assert watched.pod("worker")["metadata"]["name"] == "worker-0"
    assert watched.pod("worker", apart=True)["metadata"]["name"] == "worker-1"


@pytest.mark.parametrize("name", drills.DRILLS)
def test_every_drill_has_a_training_that_can_be(name: str) -> None:
    images = {each: {"digest": f"sha256:{'0' * 64}"} for each in ("image_tensorflow", "image_workloads", "image_mnist")}
    run = drill_kinds.description(images, name)
    assert run.flags["train_steps"] > drills.BEGIN_AT + 2 * drill_kinds.CHECKPOINT_EVERY
    assert bool(run.roles["ps"].node_selector) == drills.DRILLS[name].together


def node(name: str, role: str, ready: str) -> dict[str, Any]:
    labels = {f"node-role.kubernetes.io/{role}": ""} if role else {}
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


def test_chief_and_ps_are_kept_where_the_drill_wants_them() -> None:
    nodes = [node("cp1", "control-plane", "True"), node("worker1", "", "True"), node("worker2", "", "Unknown")]
    server = ApiServer({f"/api/v1/nodes/{each['metadata']['name']}": each for each in nodes})
    api = Api(server)

    def marked() -> list[str]:
        return [each["metadata"]["name"] for each in api.list("v1", "Node", labels=drill_kinds.HERE)]

    assert drills.workers(api) == ["worker1", "worker2"]
    drills.mark(api, ["worker1"])
    assert marked() == ["worker1"]
    drills.mark(api, ["worker1", "worker2"])
    assert marked() == ["worker1", "worker2"]
    drills.mark(api, [])
    assert marked() == []
    assert [cuts.ready(api, name) for name in ("worker1", "worker2", "worker3")] == ["True", "Unknown", ""]


@pytest.mark.parametrize(
    ("line", "alive"),
    [("abc 12 RUNNING", True), ("abc 12 STOPPED", False), ("abcd 12 RUNNING", False), ("TASK PID STATUS", False)],
)
def test_a_process_is_alive_when_its_node_says_so(monkeypatch: pytest.MonkeyPatch, line: str, alive: bool) -> None:
    said = subprocess.CompletedProcess([], 0, stdout=f"TASK    PID    STATUS\n{line}\n")
    monkeypatch.setattr(cuts.subprocess, "run", lambda *_, **__: said)
    ours = pod("chief", 0, "worker1")
    ours["status"]["containerStatuses"] = [{"containerID": "containerd://abc"}]
    assert cuts.runs("lab", ours) is alive


def test_another_chief_has_to_do_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    step, start = {"event": "step", "step": 20, "time": 1.0}, {"event": "start", "time": 0.0}
    watched = mishaps.Watched(None, drills.Training, said={"chief-0": [step], "new": [start]})  # type: ignore[arg-type]
    monkeypatch.setattr(watched, "look", list)
    monkeypatch.setattr(cuts, "BACK_SECONDS", -1)
    with pytest.raises(BenchError, match="another chief"):
        cuts.until_elsewhere(watched, pod("chief", 0, "worker1"))
    watched.said["new"].append(step)
    cuts.until_elsewhere(watched, pod("chief", 0, "worker1"))
