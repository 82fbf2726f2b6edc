#!/usr/bin/env python3
"""Measure GPU jobs started by train.yml against the same pods applied by hand. Writes a table to docs/benchmarks.md.

    .venv/bin/python tests/bench/gpu_jobs.py [--pairs 3] [--inventory inventories/lab --lab trainyard]

The lab's GPUs cannot compute. The measurement shows the overhead of the project per pod, and the delay of the device
plugin. By hand means: the Job of the previous run, created again through the API and polled ten times a second.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import page
import report
from inputs import SHARED
from stand import NAMESPACE, Stand, add_options, standing
from timed import BenchError

from trainyard.kube.api import Api, KubeError

GPUS = {"lab_gpus": 2}
"""GPUs of each worker."""
JOBS = ("nvidia_smi", "mnist_gpu", "speech_gpu")
RATIO = 1.1
ALLOCATABLE_SECONDS = 10.0
LIMIT = 900.0
RESOURCE = "nvidia.com/gpu"
PLUGIN = "trainyard.dev/gpu-setting"
"""Label of the device plugin's pods."""
HEAD = ["job with one GPU", "apply to completion, median (range)", "times", "aim"]
PAUSE = 0.1

Object = Mapping[str, Any]


def by_train(stand: Stand, workload: str) -> tuple[float, Object]:
    """Return the seconds of the run from its record, and its Job in the cluster."""
    run = workload.replace("_", "-")
    stand.forget(run)
    stand.train(workload=workload)
    kept = stand.record(run)
    if kept.get("gpu_allocated", 1) != 1 or kept.get("compute", "cpu") != "cpu":
        raise BenchError(f"{run} had {kept.get('gpu_allocated')} GPUs and computed on {kept.get('compute')}.")
    job = stand.api.get("batch/v1", "Job", run, NAMESPACE)
    if not job:
        raise BenchError(f"The Job of {run} is gone after its end.")
    return float(kept["apply_to_completion_seconds"]), job


def copied(job: Object) -> dict[str, Any]:
    """Return the Job as a user would write it: the same pod and name, without fields added by the cluster."""
    template = {**job["spec"]["template"]}
    added = ("batch.kubernetes.io/controller-uid", "controller-uid", "batch.kubernetes.io/job-name", "job-name")
    labels = {name: value for name, value in template["metadata"]["labels"].items() if name not in added}
    template["metadata"] = {**template["metadata"], "labels": labels}
    kept = {key: value for key, value in job["spec"].items() if key not in ("selector", "template", "suspend")}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": job["metadata"]["name"], "namespace": NAMESPACE},
        "spec": {**kept, "template": template},
    }


def by_hand(stand: Stand, job: Object) -> float:
    """Return the seconds from the creation of a Job to its condition Complete.

    Its files are removed afterwards: they have no record, and another Job by hand would continue from them.
    """
    name = job["metadata"]["name"]
    stand.forget(name)
    begin = time.monotonic()
    stand.api.create(copied(job))
    until(f"the end of {name}", lambda: complete(stand.api.get("batch/v1", "Job", name, NAMESPACE)))
    seconds = time.monotonic() - begin
    stand.api.delete("batch/v1", "Job", name, NAMESPACE)
    until("the end of both", lambda: not stand.pods(name) and not stand.api.get("batch/v1", "Job", name, NAMESPACE))
    stand.on_node("worker1", "rm", "--recursive", "--force", f"{SHARED}/{name}")
    return seconds


def complete(job: Object | None) -> bool:
    """Return whether a Job is complete.

    :raises BenchError: it has failed.
    """
    conditions = ((job or {}).get("status") or {}).get("conditions") or []
    held = {each["type"] for each in conditions if each["status"] == "True"}
    if "Failed" in held:
        raise BenchError(f"The Job failed: {conditions}.")
    return "Complete" in held


def until(what: str, done: Callable[[], bool]) -> None:
    """Wait for a condition.

    :raises BenchError: it takes too long.
    """
    end = time.monotonic() + LIMIT
    while not done():
        if time.monotonic() > end:
            raise BenchError(f"{what} did not come within {LIMIT:.0f} s.")
        time.sleep(PAUSE)


def start_plugin(api: Api, node: str) -> float:
    """Return the seconds from the start of the plugin on a node without one until the node offers all its GPUs."""

    def plugin() -> Object:
        pods = api.list("v1", "Pod", "kube-system", labels=PLUGIN)
        return next((pod for pod in pods if pod["spec"].get("nodeName") == node), {})

    def allocatable() -> int:
        return int(((api.get("v1", "Node", node) or {}).get("status") or {}).get("allocatable", {}).get(RESOURCE, 0))

    label(api, node, None)
    # A plugin that returns immediately goes unnoticed: a node reports its state every 10 s.
    until("the loss of the GPUs", lambda: not plugin() and allocatable() == 0)
    label(api, node, "ready")
    until("the return of the GPUs", lambda: allocatable() == GPUS["lab_gpus"])
    seen = time.time()
    return seen - begun(plugin())


def label(api: Api, node: str, state: str | None) -> None:
    """Set or remove the label that places the plugin on a node."""
    body = {"metadata": {"labels": {"trainyard.dev/gpu": state}}}
    path = api.path("v1", "Node", None, node)
    api.call("PATCH", path, body=body, content_type="application/merge-patch+json", what=f"label of {node}")


def begun(pod: Object) -> float:
    """Return when the first container of a pod started, seconds since the epoch; the cluster records whole seconds."""
    state = pod["status"]["containerStatuses"][0]["state"]
    return datetime.fromisoformat(state["running"]["startedAt"]).timestamp()


def measure(stand: Stand, pairs: int) -> bool:
    """Run both in turn and write the table; return whether the aims were reached."""
    stand.play("playbooks/supply.yml", "-e", json.dumps({"bundle_artefacts_also": ["image_speech"]}), limit=1800)
    starts = [start_plugin(stand.api, "worker1") for _ in range(pairs)]
    met = statistics.median(starts) <= ALLOCATABLE_SECONDS
    words = f"{ALLOCATABLE_SECONDS:.0f} s" + ("" if met else ", missed")
    rows = [["GPUs offered, from the start of the device plugin", report.spread(starts), str(pairs), words]]
    page.write("gpu_jobs", HEAD, rows)
    for workload in JOBS:
        # This run is not counted: it transfers image and code to the nodes.
        _, job = by_train(stand, workload)
        seconds: dict[str, list[float]] = {"train.yml": [], "by hand": []}
        for number in range(pairs):
            for side in sorted(seconds, reverse=bool(number % 2)):
                taken = by_train(stand, workload)[0] if side == "train.yml" else by_hand(stand, job)
                seconds[side].append(taken)
                print(f"gpu_jobs: {workload}: pair {number + 1} of {pairs}: {side}: {taken:.1f} s", flush=True)
        ratios = [ours / theirs for ours, theirs in zip(seconds["train.yml"], seconds["by hand"], strict=True)]
        reached = statistics.median(ratios) <= RATIO or min(ratios) <= 1.0 <= max(ratios)
        met = met and reached
        aim = f"{RATIO}, or 1.0 within the range" + ("" if reached else ", missed")
        page.write("gpu_jobs", HEAD, [
            [f"`{workload}` by train.yml", report.spread(seconds["train.yml"]), str(pairs), ""],
            [f"`{workload}` by hand", report.spread(seconds["by hand"]), str(pairs), ""],
            [f"`{workload}`, train.yml / by hand, pair by pair", report.spread(ratios, "", 2), str(pairs), aim],
        ])  # fmt: skip
        stand.forget(workload.replace("_", "-"))
    return met


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_options(parser)
    parser.add_argument("--pairs", type=int, default=3, help="runs of each (default: %(default)s)")
    options = parser.parse_args(argv)
    try:
        with standing(options, GPUS) as stand:
            return 0 if measure(stand, options.pairs) else 1
    except (BenchError, KubeError) as error:
        print(f"gpu_jobs: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
