"""Snapshots made by hand, with the shapes of Kubernetes 1.36 and JobSet 0.12: a run that goes on well, and changes."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from tests.unit.training.samples import training
from tests.unit.why.cluster import NODES, NOW, SYSTEM, Object, ago, claims, condition, leases
from trainyard.trainings.jobset import run_object
from trainyard.trainings.objects import network_policies
from trainyard.why.snapshot import Snapshot

ATTEMPT = "20261123T120000Z-1f2e"
PLACES = (("chief", 0), ("ps", 0), ("worker", 0), ("worker", 1))


@cache
def _unchanged() -> str:
    """The object of a run without changes, as JSON: to read it again is five times as fast as to make it."""
    return json.dumps(run_object(training(), ATTEMPT))


def live(age: float = 600, status: Object | None = None, **changes: Any) -> Object:
    found = copy.deepcopy(run_object(training(**changes), ATTEMPT)) if changes else json.loads(_unchanged())
    found["metadata"] |= {"uid": "uid-mnist", "creationTimestamp": ago(age)}
    return {**found, "status": status or {}}


def jobs(run: Object, age: float = 595, **active: int) -> list[Object]:
    """The Jobs that the JobSet controller makes.

    :param active: pods of a role that are there, where those are not all.
    """
    found = []
    for each in run["spec"]["replicatedJobs"]:
        name, spec = f"mnist-{each['name']}-0", copy.deepcopy(each["template"]["spec"])
        meta = {
            "name": name, "namespace": "trainings", "uid": f"uid-{name}", "creationTimestamp": ago(age),
            "labels": each["template"]["metadata"]["labels"],
            "ownerReferences": [{"kind": "JobSet", "name": "mnist", "uid": run["metadata"]["uid"]}],
        }  # fmt: skip
        status = {"active": active.get(each["name"], spec["parallelism"]), "terminating": 0}
        found.append({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec, "status": status})
    return found


def pod(
    role: str, index: int = 0, node: str = "worker1", age: float = 590, state: Object | None = None,
    run: Object | None = None, **more: Any,
) -> Object:  # fmt: skip
    """A pod of the run, which runs where nothing else is said."""
    made = run or live()
    template = next(
        each["template"]["spec"]["template"] for each in made["spec"]["replicatedJobs"] if each["name"] == role
    )
    name = f"mnist-{role}-0-{index}-{int(age)}"
    labels = {**template["metadata"]["labels"], "batch.kubernetes.io/job-completion-index": str(index)}
    labels |= {"jobset.sigs.k8s.io/jobset-name": "mnist", "jobset.sigs.k8s.io/restart-attempt": "0"}
    meta = {"name": name, "namespace": "trainings", "uid": f"uid-{name}", "labels": labels}
    meta |= {"creationTimestamp": ago(age)}
    now = state or {"running": {"startedAt": ago(age - 5)}}
    runs = "running" in now
    over = now.get("terminated") or {}
    phase = "Running" if runs else ("Failed" if over.get("exitCode") else "Succeeded") if over else "Pending"
    status = {
        "phase": phase,
        "podIP": f"10.244.1.{10 + index}",
        "conditions": [
            condition("PodReadyToStartContainers", runs or bool(over)), condition("Initialized"),
            condition("Ready", runs), condition("ContainersReady", runs), condition("PodScheduled"),
        ],
        "containerStatuses": [
            {"name": "tensorflow", "state": now, "lastState": {}, "ready": runs, "restartCount": 0, "started": runs}
        ],
    }  # fmt: skip
    spec = {**copy.deepcopy(template["spec"]), "nodeName": node}
    found = {"metadata": meta, "spec": spec, "status": status}
    for key, value in more.items():
        found[key] = {**found[key], **value}
    return found


def unplaced(
    role: str, index: int = 0, said: str = "0/3 nodes are available: 3 Insufficient cpu.", **more: Any
) -> Object:
    """A pod for which the scheduler finds no node."""
    found = pod(role, index, node="", state={"waiting": {}}, **more)
    no = condition("PodScheduled", False, 130, reason="Unschedulable", message=said)
    found["status"] = {"phase": "Pending", "conditions": [no]}
    return found


def waiting(role: str, index: int = 0, reason: str = "ContainerCreating", message: str = "", **more: Any) -> Object:
    return pod(role, index, state={"waiting": {"reason": reason, **({"message": message} if message else {})}}, **more)


def over(role: str, code: int, index: int = 0, reason: str = "", done: float = 5, **more: Any) -> Object:
    """A pod whose container has ended.

    :param done: seconds ago.
    """
    how = {"exitCode": code, "reason": reason or ("Error" if code else "Completed"), "startedAt": ago(580)}
    return pod(role, index, state={"terminated": {**how, "finishedAt": ago(done)}}, **more)


def event(about: Object, reason: str, message: str, age: float = 60, kind: str = "Warning") -> Object:
    meta = about["metadata"]
    involved = {"kind": about.get("kind", "Pod"), "name": meta["name"], "namespace": meta.get("namespace", "")}
    return {
        "metadata": {"name": f"{meta['name']}.{reason}", "namespace": "trainings", "creationTimestamp": ago(age)},
        "involvedObject": {**involved, "uid": meta["uid"]},
        "type": kind, "reason": reason, "message": message, "firstTimestamp": ago(age), "lastTimestamp": ago(age),
        "count": 1, "source": {"component": "kubelet"},
    }  # fmt: skip


def said(*events: tuple[str, float] | tuple[str, float, Object]) -> str:
    """A chief's log: events with the seconds since, and fields."""
    lines = ["2026-11-23 12:00:00.000000: I tensorflow/core/platform/cpu_feature_guard.cc:210] This TensorFlow"]
    for name, age, *fields in events:
        more = fields[0] if fields else {}
        lines.append(json.dumps({"event": name, "time": NOW.timestamp() - age, **more}))
    return "\n".join(lines) + "\n"


def steps(first: float = 60, until: float = 2, every: float = 2) -> list[tuple[str, float, Object]]:
    """Lines of steps from so many seconds ago to so many, one every two seconds."""
    count = int((first - until) // every) + 1
    more = {"steps_total": 2000, "loss": 0.3, "steps_per_second": 50 / every}
    return [("step", first - every * i, {"step": 50 * (i + 1), **more}) for i in range(count)]


BEGUN = (("start", 580.0), ("device", 570.0), ("connected", 565.0))
PODS = [pod(role, index, f"worker{1 + index}") for role, index in PLACES]
TRAINS = said(*BEGUN, *steps())


def look(
    pods: Sequence[Object] | None = None, log: str | dict[str, str] = TRAINS, run: Object | None = None, **more: Any
) -> Snapshot:
    """A snapshot: of a run that trains on two workers, where nothing else is said.

    :param log: of the chief; or of pods by their names.
    """
    mine = list(PODS if pods is None else pods)
    made = run or live()
    everyone = more.pop("everyone", SYSTEM)
    parts = {
        "jobs": jobs(made), "pods": mine, "events": [], "nodes": NODES, "claims": claims(), "volumes": [],
        "classes": [], "elsewhere": [],
        "quotas": [], "policies": network_policies(training()), "leases": leases(),
        "space": [{"metadata": {"name": "trainings", "labels": {"kubernetes.io/metadata.name": "trainings"}}}],
    }  # fmt: skip
    top = {key: more.pop(key) for key in ("record", "others", "names", "live") if key in more}
    parts |= more
    parts.setdefault("everyone", [*everyone, *(each for each in mine if each["spec"]["nodeName"])])
    chief = next((each["metadata"]["name"] for each in reversed(mine) if "-chief-" in each["metadata"]["name"]), "")
    logs = log if isinstance(log, dict) else {chief: log}
    found = Snapshot("mnist", "trainings", NOW.isoformat(), ["cnn", "mnist"], made, None, parts, logs)
    return replace(found, **top)


def record(result: str, **more: Any) -> Object:
    known = {"name": "mnist", "result": result, "attempt": ATTEMPT, "topology": "parameter_server", **more}
    return {"metadata": {"name": "mnist-result", "namespace": "trainings"}, "data": {"result.json": json.dumps(known)}}
