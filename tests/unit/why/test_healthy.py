"""Runs with which nothing is wrong: no cause is ever named."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.why.cluster import NODES, NOW, SYSTEM, ago, condition, node, other
from tests.unit.why.samples import (
    ATTEMPT,
    BEGUN,
    PODS,
    event,
    jobs,
    live,
    look,
    over,
    pod,
    record,
    said,
    steps,
    waiting,
)
from trainyard.why.answer import WELL
from trainyard.why.judge import judge
from trainyard.why.snapshot import Snapshot

EARLIER = "20261121T110000Z-0000"

ALL = (("chief", 0), ("ps", 0), ("worker", 0), ("worker", 1))
IMAGE = "mirror.lab:443/trainyard/tensorflow:2.21.0"
NEW = [pod(role, index, age=3, state={"waiting": {"reason": "ContainerCreating"}}) for role, index in ALL]


def restarts() -> list[dict[str, Any]]:
    """Containers that were started again long ago."""
    pods = copy.deepcopy(PODS)
    for each in pods:
        how = {"exitCode": 137, "reason": "OOMKilled", "startedAt": ago(590), "finishedAt": ago(400)}
        each["status"]["containerStatuses"][0] |= {"restartCount": 5, "lastState": {"terminated": how}}
    return pods


def fresh(name: str = "Scheduled") -> list[dict[str, Any]]:
    """Pods that were made this moment, which nobody has looked at."""
    pods = [pod(role, index, node="", age=1) for role, index in ALL]
    return [{**each, "status": {"phase": "Pending"}} for each in pods]


def lost_node() -> Snapshot:
    """A worker's node was lost, its pod ended, and another runs in its place."""
    gone = over("worker", 137, 1, "Error", 120, age=590)
    gone["status"]["conditions"].append({"type": "DisruptionTarget", "status": "True"})
    again = pod("worker", 1, "worker1", age=100)
    events = [
        ("peer", 140.0, {"task": "worker 1", "state": "lost", "why": "it has said nothing for 15 s"}),
        ("peer", 90.0, {"task": "worker 1", "state": "here", "why": "it was replaced"}),
    ]
    return look(
        [*PODS[:3], gone, again], said(*BEGUN, *events, *steps()), nodes=[*NODES[:2], node("worker2", ready=False)]
    )


def finished(result: str) -> Snapshot:
    status = {"terminalState": "Completed", "conditions": [
        {"type": "Completed", "status": "True", "lastTransitionTime": ago(30)}]}  # fmt: skip
    pods = [over("chief", 0), *(over(role, 42, index) for role, index in ALL[1:])]
    return look(pods, said(*BEGUN, *steps(60, 40), ("end", 35.0)), live(status=status), record=record(result))


def importing() -> Snapshot:
    labels = {"app.kubernetes.io/managed-by": "trainyard", "trainyard.dev/run": "mnist.import"}
    mine = pod("chief", age=60)
    mine["metadata"] |= {"name": "mnist-import-x", "labels": labels}
    job = {"metadata": {"name": "mnist-import", "namespace": "trainings", "uid": "i"}, "spec": {"parallelism": 1}}
    return look([mine], "", None, live=None, jobs=[{**job, "status": {"active": 1}}])


OLD = event(
    {"metadata": {"name": "mnist-worker-0-1-590", "uid": "of-the-pod-before"}}, "Failed", "Failed to pull image", 30
)
PULLING = event(NEW[2], "Pulling", f'Pulling image "{IMAGE}"', 100, "Normal")
PULLS = pod("worker", 0, age=900, state={"waiting": {"reason": "ContainerCreating"}})

THEIRS = {"name": "cnn-worker-0", "namespace": "trainings", "uid": "cnn-worker-0", "creationTimestamp": ago(60),
          "ownerReferences": [{"kind": "JobSet", "name": "cnn", "uid": "cnn"}]}  # fmt: skip
LATE = {"metadata": THEIRS, "status": {"conditions": [condition("Failed", reason="DeadlineExceeded")]}}
REFUSED = event(
    {"kind": "Job", "metadata": THEIRS}, "FailedCreate", "Error creating: exceeded quota: a, requested: b, used: c", 5
)


def importing_beside_a_refused_run() -> Snapshot:
    mine = importing()
    there = [*mine.parts["jobs"], {"metadata": THEIRS, "spec": {"parallelism": 2}, "status": {}}]
    return replace(mine, parts={**mine.parts, "jobs": there, "events": [REFUSED]})


HEALTHY: list[tuple[str, str, Callable[[], Snapshot]]] = [
    ("trains", "running", look),
    ("old restarts", "running", lambda: look(restarts())),
    ("evaluates for a minute", "running", lambda: look(log=said(*BEGUN, *steps(120, 60), ("evaluating", 58.0)))),
    ("evaluates for ten", "running", lambda: look(log=said(*BEGUN, *steps(640, 600), ("evaluating", 600.0)))),
    ("saves for a minute", "running", lambda: look(log=said(*BEGUN, *steps(120, 60), ("saving", 58.0)))),
    ("has evaluated", "running", lambda: look(
        log=said(*BEGUN, *steps(120, 60), ("evaluating", 58.0), ("evaluate", 3.0)))),
    ("writes its model", "running", lambda: look(log=said(*BEGUN, *steps(120, 60), ("export", 50.0)))),
    ("slow steps", "running", lambda: look(log=said(*BEGUN, *steps(200, 40, 20)))),
    ("one line of slow steps", "running", lambda: look(log=said(*BEGUN, *steps(40, 40, 60)))),
    ("steps without a speed", "running", lambda: look(log=said(*BEGUN, ("step", 90.0, {"step": 20})))),
    ("an evaluation after each line", "running", lambda: look(
        log=said(*BEGUN, *steps(140, 100, 40), ("evaluating", 99.0), ("evaluate", 60.0)))),
    ("pulls", "starting", lambda: look([*PODS[:2], PULLS, PODS[3]], said(*BEGUN[:1]), events=[
        event(PULLS, "Pulling", f'Pulling image "{IMAGE}"', 890, "Normal")])),
    ("has pulled after a failure", "starting", lambda: look([*PODS[:2], PULLS, PODS[3]], "", events=[
        event(PULLS, "Failed", f'Failed to pull image "{IMAGE}": i/o timeout', 500),
        event(PULLS, "Pulled", f'Successfully pulled image "{IMAGE}"', 5, "Normal")])),
    ("its data is brought", "starting", importing),
    ("just submitted", "starting", lambda: look([], "", live(2), jobs=[])),
    ("pods just made", "starting", lambda: look(fresh(), "", live(3))),
    ("containers are made", "starting", lambda: look(NEW, "", live(5))),
    ("a mount failed once", "starting", lambda: look([*PODS[:3], mine := waiting("worker", 1, age=10)], "", events=[
        event(mine, "FailedMount", "MountVolume.SetUp failed: failed to sync configmap cache", 8)])),
    ("imports TensorFlow", "starting", lambda: look(log=said(("start", 50.0)))),
    ("first steps are prepared", "starting", lambda: look(log=said(*BEGUN[:2], ("connected", 50.0)))),
    ("its data is brought, another run is refused", "starting", importing_beside_a_refused_run),
    ("another run was not done in time", "running", lambda: look(jobs=[*jobs(live()), LATE])),
    ("finished", "finished", lambda: finished("passed")),
    ("finished without a bound", "finished", lambda: finished("no_bound")),
    ("stopped by a person", "stopped", lambda: look(
        [], "", live=None, jobs=[], record=record("stopped", steps=400, ended_at=ago(90)))),
    ("passed long ago", "finished", lambda: look(
        [], "", live=None, jobs=[], record=record("passed", ended_at=ago(90000)))),
    ("is being stopped", "stopped", lambda: look(run={**(one := live()), "metadata": {
        **one["metadata"], "deletionTimestamp": ago(3)}})),
    ("goes on after a lost node", "running", lost_node),
    ("events of the pod before", "running", lambda: look(events=[OLD])),
    ("a quota that let it through in the end", "running", lambda: look(events=[event(
        jobs(live())[2], "FailedCreate", "Error creating: exceeded quota: a, requested: b, used: c", 500)])),
    ("a record of the attempt before", "running", lambda: look(record=record("failed", attempt=EARLIER, why="bad"))),
    ("full nodes, all pods placed", "running", lambda: look(everyone=[*SYSTEM, other("cnn", "worker-0", cpu="3")])),
    ("a program without lines of ours", "running", lambda: look(log="Epoch 1/10\n")),
    ("restarted, all pods new", "starting", lambda: look(NEW, "", live(status={"restarts": 1}))),
    ("a worker was killed and has come back", "running", lambda: look(
        [*PODS[:3], over("worker", 137, 1, "OOMKilled", 300), pod("worker", 1, age=290)])),
    ("the controller sleeps while nothing is to do", "running", lambda: look(everyone=SYSTEM[:3])),
]  # fmt: skip


@pytest.mark.parametrize(("state", "make"), [each[1:] for each in HEALTHY], ids=[each[0] for each in HEALTHY])
def test_healthy(state: str, make: Callable[[], Snapshot]) -> None:
    answer = judge(make())
    assert [(each.part, each.code) for each in answer.findings if each.part != "note"] == []
    assert (answer.state, answer.status) == (state, WELL), (answer.headline, answer.unread)


def test_there_are_twenty_and_they_are_of_this_attempt() -> None:
    assert len(HEALTHY) >= 20
    assert look().live["metadata"]["annotations"]["trainyard.dev/attempt"] == ATTEMPT  # type: ignore[index]
    assert look().time == NOW.isoformat()
