#!/usr/bin/env python3
"""Run cnn_ps once at a realistic size: 1 chief, 8 ps and 16 workers. Writes a table to docs/benchmarks.md.

    .venv/bin/python tests/bench/wide.py [--inventory inventories/lab --lab trainyard]

It fails if a pod does not run in time, if the run does not end with exactly its steps, or if it leaves remnants.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import page
from memory import Sampler
from stand import NAMESPACE, Stand, add_options, standing
from timed import BenchError

from trainyard.kube.api import KubeError
from trainyard.trainings.log_events import events
from trainyard.trainings.run_state import created, live_object

RUN = "wide"
PS, WORKERS, STEPS = 8, 16, 200
PODS = 1 + PS + WORKERS
AIM_SECONDS = 240
"""Time for all pods to run, from the submission."""
LIMIT = 600.0
"""Time limit of the wait for them."""
ENTRY = {
    "workload": "cnn_ps",
    "run": RUN,
    "ps": PS,
    "worker": WORKERS,
    "train_steps": STEPS,
    "accuracy_bound": 0,
    # Two nodes of a lab have two cores between them; a process needs about 450 MB.
    "requests": {"cpu": "50m", "memory": "512Mi"},
    # 25 processes load TensorFlow, and 16 trace the model, on these cores.
    "start_timeout": 600,
    "stall_timeout": 300,
    "timeout": 1500,
}
HEAD = ["1 chief, 8 ps, 16 workers", "measured", "aim"]


def measure(stand: Stand) -> bool:
    """Run it, and write the times; return whether the pods ran in time."""
    stand.forget(RUN)
    with Sampler(stand.lab) as peak:
        stand.train(ENTRY, wait="false")
        begin = datetime.fromisoformat(created(live_object(stand.api, NAMESPACE, RUN))).timestamp()
        running = until_all_run(stand, begin)
        # The same call again follows the run to its end.
        stand.train(ENTRY)
    kept = stand.record(RUN)
    require(kept, stand.pods(RUN))
    chief = {event["event"]: event["time"] - begin for event in reversed(chief_events(kept["logs"]))}
    rows = [
        [f"all {PODS} pods run, from the submission", f"{running:.0f} s", f"{AIM_SECONDS} s"],
        ["the chief has reached all of them", f"{chief['connected']:.0f} s", ""],
        ["first step reported", f"{chief['step']:.0f} s", ""],
        [f"{STEPS} steps done, model exported", f"{chief['end']:.0f} s", ""],
        ["steps done, of those asked for", f"{kept['steps']} of {STEPS}", "all"],
        ["pods that hold resources afterwards", "0", "0"],
        ["peak memory of the lab, working set", f"{peak.working_set / 2**30:.1f} GiB", ""],
    ]
    page.write("wide", HEAD, rows)
    stand.forget(RUN)
    return running <= AIM_SECONDS


def until_all_run(stand: Stand, begin: float) -> float:
    """Return the seconds from the submission until all pods run at the same time.

    :raises BenchError: they do not; the message has the reasons.
    """
    while True:
        pods = stand.pods(RUN)
        if len(pods) == PODS and all(phase(pod) == "Running" for pod in pods):
            return time.time() - begin
        if time.time() - begin > LIMIT:
            raise BenchError(f"Not all {PODS} pods run after {LIMIT:.0f} s: {'; '.join(waiting(pods))}.")
        time.sleep(0.5)


def phase(pod: Mapping[str, Any]) -> str:
    return str((pod.get("status") or {}).get("phase"))


def waiting(pods: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return pods that do not run, with the cluster's messages, if any."""
    found = []
    for pod in pods:
        if phase(pod) == "Running":
            continue
        conditions = (pod.get("status") or {}).get("conditions") or []
        why = [each["message"] for each in conditions if each["status"] == "False" and each.get("message")]
        found.append(f"{pod['metadata']['name']} {phase(pod)} {' '.join(why)}".strip())
    return found


def require(kept: Mapping[str, Any], pods: Iterable[Mapping[str, Any]]) -> None:
    """Check the record and the remaining pods.

    :raises BenchError: steps are missing, or a pod still holds resources.
    """
    if (kept.get("result"), kept.get("steps")) != ("no_bound", STEPS):
        raise BenchError(f"The run ended with {kept.get('result')} at step {kept.get('steps')} of {STEPS}.")
    if len(kept["roles"]) != PODS:
        raise BenchError(f"The record knows of {len(kept['roles'])} pods, not of {PODS}.")
    held = [pod["metadata"]["name"] for pod in pods if phase(pod) in ("Pending", "Running")]
    if held or not kept["released"]:
        raise BenchError(f"These hold resources after the end: {', '.join(held) or 'by the record'}.")


def chief_events(logs: Iterable[str]) -> list[dict[str, Any]]:
    """Return all events of the chief from the kept logs."""
    paths = sorted(path for path in logs if "-chief-" in path)
    found = []
    for path in paths:
        with open(path, encoding="utf-8") as stream:
            found += events(stream.read())
    return found


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_options(parser)
    try:
        with standing(parser.parse_args(argv)) as stand:
            met = measure(stand)
    except (BenchError, KubeError) as error:
        print(f"wide: {error}", file=sys.stderr)
        return 1
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
