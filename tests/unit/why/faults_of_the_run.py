"""Faults of a run itself, as snapshots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.unit.why.cluster import ago, condition
from tests.unit.why.samples import BEGUN, PODS, jobs, live, look, over, pod, said, steps
from trainyard.why.snapshot import Snapshot


def failed(code: int, *events: Any, role: str = "chief", **more: Any) -> Snapshot:
    """A run that has failed with the exit of one of its pods."""
    mine = over(role, code, **more)
    status = {"terminalState": "Failed", "conditions": [
        {"type": "Failed", "status": "True", "reason": "FailJobSetFailurePolicyAction", "message": "jobset failed",
         "lastTransitionTime": ago(3)},
    ]}  # fmt: skip
    rest = [each for each in PODS if f"-{role}-" not in each["metadata"]["name"]]
    return look([mine, *rest], {mine["metadata"]["name"]: said(*BEGUN, *steps(60, 10), *events)}, live(status=status))


NONE = {"chief": 0, "ps": 0, "worker": 0}
HANGS = "Lost ps 0: it has said nothing for 15 s."

OF_THE_RUN: list[tuple[str, str, Callable[[], Snapshot]]] = [
    ("ps hangs", "peer_unreachable", lambda: failed(
        75, ("error", 5.0, {"code": 75, "message": HANGS, "unreachable": {"ps 0": "it has said nothing"}}))),
    ("memory", "oom_killed", lambda: failed(137, role="ps", reason="OOMKilled")),
    ("memory before its program runs", "oom_killed", lambda: look([*PODS[:3], pod("worker", 1, state={"terminated": {
        "exitCode": 128, "reason": "StartError", "startedAt": "1970-01-01T00:00:00Z", "finishedAt": ago(5),
        "message": "failed to create containerd task: OCI runtime create failed: unable to start container process: "
                   "container init was OOM-killed (memory limit too low?)"}})], said(*BEGUN))),
    ("memory of a worker", "oom_killed", lambda: look(
        [*PODS[:3], over("worker", 137, 1, "OOMKilled", 3, age=100), pod("worker", 1, age=3)], said(*BEGUN))),
    ("evicted", "evicted", lambda: look([*PODS[:3], over(
        "worker", 137, 1, status={"reason": "Evicted", "message": "The node was low on resource: memory."})],
        said(*BEGUN, *steps(60, 30)))),
    ("a GPU that the plugin does not give", "node_refused", lambda: look([*PODS[:3], pod("worker", 1, age=5, status={
        "phase": "Failed", "containerStatuses": [], "reason": "UnexpectedAdmissionError",
        "message": "Allocate failed due to no healthy devices present"})], said(*BEGUN, *steps(60, 30)))),
    ("volume full", "disk_full", lambda: failed(5, ("error", 5.0, {"message": "No space left on device"}))),
    ("volume full with its last step", "disk_full", lambda: failed(
        5, *steps(4.5, 4.5), ("error", 4.4, {"message": "No space left on device"}))),
    ("input", "refused_input", lambda: failed(2, ("error", 5.0, {"message": "batch_size is 0"}))),
    ("bound", "below_bound", lambda: failed(3, ("end", 5.0, {"accuracy": 0.5, "accuracy_bound": 0.9}))),
    ("diverged", "diverged", lambda: failed(4, ("error", 5.0, {"message": "The loss is nan"}))),
    ("watchdog", "stalled", lambda: failed(75, ("error", 5.0, {"message": "No progress.", "stalled_seconds": 121}))),
    ("crash", "crashed", lambda: failed(1)),
    ("a service that crashes", "crashed", lambda: look([*PODS[1:], pod("chief", status={"phase": "Running",
        "containerStatuses": [{"name": "tensorflow", "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                               "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}}}]})], "")),
    ("ps stopped", "silent", lambda: look(log=said(*BEGUN, *steps(60, 12)))),
    ("suspended", "suspended", lambda: look([], "", {**(one := live()), "spec": {**one["spec"], "suspend": True}},
        jobs=[{**each, "spec": {**each["spec"], "suspend": True}} for each in jobs(live(), 595, **NONE)])),
    ("too slow", "deadline", lambda: look([], "", live(status={"terminalState": "Failed"}), jobs=[{
        **jobs(live())[0],
        "status": {"conditions": [condition("Failed", reason="DeadlineExceeded", message="too long")]}}])),
    ("restarts", "restarts_exhausted", lambda: look([], "", live(status={
        "restarts": 3, "terminalState": "Failed",
        "conditions": [condition("Failed", reason="ReachedMaxRestarts", message="max number of restarts")]}))),
]  # fmt: skip
