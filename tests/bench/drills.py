#!/usr/bin/env python3
"""Do to a running training what happens to servers, and measure what it costs. Prints a table in Markdown.

    .venv/bin/python tests/bench/drills.py [--only worker_kill,node_off] [--inventory inventories/lab --lab trainyard]

Each drill is a run of its own, and fails if what was done did not happen, or if the run does not end with exactly its
steps. A node that was switched off is started again afterwards, by site.yml.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import inputs
import report
from ansible.module_utils.trainyard.kube.api import Api, KubeError
from ansible.module_utils.trainyard.kube.kubeconfig import connect
from ansible.module_utils.trainyard.training.jobset import run_object
from ansible.module_utils.trainyard.training.model import Training
from ansible.module_utils.trainyard.training.objects import surroundings
from mishaps import Watched, evict, kill, switch_off, until
from sides import LAB, Site
from timed import BenchError, timed

STEPS = 6_000
CHECKPOINT_EVERY = 500
BEGIN_AT = 1_200
"""Step at which the drill happens, after two checkpoints."""
LIMIT = 420.0
"""Seconds for one drill."""

LOST_AT_MOST = {"kill": CHECKPOINT_EVERY, "evict": 0, "off": CHECKPOINT_EVERY}
"""Steps that may be done twice. Without a worker none is: the others go on."""

DRILLS: dict[str, tuple[str, int, Callable[[Watched, str], None]]] = {
    "worker_kill": ("worker, signal 9", 0, lambda watched, lab: kill(watched, lab, "worker")),
    "ps_kill": ("ps, signal 9", LOST_AT_MOST["kill"], lambda watched, lab: kill(watched, lab, "ps")),
    "chief_kill": ("chief, signal 9", LOST_AT_MOST["kill"], lambda watched, lab: kill(watched, lab, "chief")),
    "worker_evict": ("worker, eviction", 0, lambda watched, lab: evict(watched, "worker")),
    "ps_evict": ("ps, eviction", LOST_AT_MOST["evict"], lambda watched, lab: evict(watched, "ps")),
    "chief_evict": ("chief, eviction", LOST_AT_MOST["evict"], lambda watched, lab: evict(watched, "chief")),
    "node_off_worker": (
        "node of a worker, power cut",
        LOST_AT_MOST["off"],
        lambda watched, lab: switch_off(watched, lab, "worker"),
    ),
    "node_off": (
        "node of the chief, power cut",
        LOST_AT_MOST["off"],
        lambda watched, lab: switch_off(watched, lab, "chief"),
    ),
}


def drill(api: Api, run: Training, lab: str, do: Callable[[Watched, str], None]) -> dict[str, float]:
    """One run with one mishap.

    :returns: `gap`, the longest time without a new step from the mishap on, in seconds; `lost`, steps that were done
        twice; `restarts` that count.
    """
    watched = Watched(api, run)
    for obj in surroundings(run):
        api.apply(obj)
    api.apply(run_object(run, f"{int(time.time())}"))
    until(f"step {BEGIN_AT}", lambda: (watched.steps() or [{"step": 0}])[-1]["step"] >= BEGIN_AT, LIMIT)
    moment = time.time()
    do(watched, lab)
    until("the end", lambda: watched.status().get("terminalState"), LIMIT)
    told = watched.look()
    end = [event for event in told if event["event"] == "end"]
    if watched.status().get("terminalState") != "Completed" or not end or end[-1]["step"] != run.flags["train_steps"]:
        raise BenchError(f"The run ended {watched.status().get('terminalState')} with {end[-1:]}.")
    steps = [event for event in told if event["event"] in ("step", "end")]
    return {
        "gap": longest_pause(steps, moment),
        "lost": float(sum(lost(steps, each) for each in told if each["event"] == "restore")),
        "restarts": float(watched.status().get("restartsCountTowardsMax", 0)),
    }


def longest_pause(steps: Sequence[Mapping[str, Any]], moment: float) -> float:
    """The longest time, in seconds, from one new step to the next after a moment; steps done twice are not new."""
    highest, at, longest = 0, 0.0, 0.0
    for event in steps:
        if event["step"] <= highest:
            continue
        if event["time"] > moment:
            longest = max(longest, event["time"] - max(at, moment))
        highest, at = event["step"], event["time"]
    return longest


def lost(steps: Sequence[Mapping[str, Any]], restore: Mapping[str, Any]) -> int:
    """Steps that had been reported and were done again after a restore."""
    before = [event["step"] for event in steps if event["time"] <= restore["time"]]
    return max(0, max(before, default=0) - int(restore["step"]))


def clean(api: Api, run: Training) -> None:
    try:
        api.delete("jobset.x-k8s.io/v1alpha2", "JobSet", run.name, run.namespace)
    except KubeError as error:
        print(f"drills: {error}", file=sys.stderr)
    until("the end of the pods", lambda: not Watched(api, run).pods(), 120)


def measure(options: argparse.Namespace, folder: Path, inventory: Path) -> tuple[list[list[str]], bool]:
    """A row for each drill that passed, and whether all did."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    site = ["ansible-playbook", "site.yml", "-i", str(inventory)]
    timed(site, folder / "site.log", 1800, env={"PATH": programs})
    bundle = inputs.artefacts(inputs.CACHE)
    api = connect(f"/var/lib/trainyard/{options.lab}/kubeconfig")
    rows: list[list[str]] = []
    passed = True
    for name in options.only.split(","):
        words, at_most, do = DRILLS[name]
        knobs = {"train_steps": STEPS, "checkpoint_every": CHECKPOINT_EVERY, "accuracy_bound": 0, "timeout": 0}
        run = inputs.training(bundle, {"run": f"drill-{name.replace('_', '-')}", **knobs}, claim="training")
        try:
            seen = drill(api, run, options.lab, do)
            if seen["lost"] > at_most or (at_most == 0 and seen["restarts"]):
                raise BenchError(f"{seen['lost']:.0f} steps lost, {seen['restarts']:.0f} restarts counted.")
            rows.append([words, f"{seen['gap']:.1f} s", f"{seen['lost']:.0f}", f"{seen['restarts']:.0f}"])
            print(f"drills: {' | '.join(rows[-1])}", flush=True)
        except (BenchError, KubeError, subprocess.SubprocessError) as error:
            passed = False
            print(f"drills: {name} failed: {error}", file=sys.stderr, flush=True)
        if name.startswith("node_off"):
            timed(site, folder / "site.log", 900, env={"PATH": programs})
        clean(api, run)
    return rows, passed


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--inventory", type=Path, help="of a lab that stands (default: one of its own, made and removed)"
    )
    parser.add_argument("--lab", default=LAB, help="lab_name of that inventory (default: %(default)s)")
    parser.add_argument("--only", default=",".join(DRILLS), help="drills, with commas (default: all)")
    options = parser.parse_args(argv)
    folder = Path(tempfile.mkdtemp(prefix="trainyard-drills-", dir="/var/tmp"))
    own = None if options.inventory else Site(folder)
    try:
        if own:
            own.prepare()
            own.down()
        rows, passed = measure(options, folder, own.inventory if own else options.inventory)
    except BenchError as error:
        print(f"drills: {error}", file=sys.stderr)
        return 1
    finally:
        if own:
            own.down()
    print(report.table(["what happened", "longest time without a new step", "steps lost", "counted restarts"], rows))
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
