#!/usr/bin/env python3
"""Inject typical server faults into a running training, and measure their cost. Writes a table to docs/benchmarks.md.

    .venv/bin/python tests/bench/drills.py [--only worker_kill,node_off] [--inventory inventories/lab --lab trainyard]

Each drill is a separate run. It fails if the fault did not occur, or if the run does not end with exactly its steps. A
node that was switched off is started again afterwards by site.yml.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import cuts
import inputs
import page
from drill_kinds import DRILLS, HERE, Drill, description
from mishaps import Watched, until
from stand import SITE_LIMIT, Stand, add_options, standing
from timed import BenchError

from trainyard.kube.api import Api, KubeError
from trainyard.trainings.jobset import run_object
from trainyard.trainings.model import Training
from trainyard.trainings.objects import surroundings

BEGIN_AT = 1_200
"""Step at which the drill happens, after two checkpoints."""
LIMIT = 600.0
"""Seconds for one drill, before the fault and after it."""
HEAD = ["what happened", "longest time without a new step", "steps done twice", "counted restarts", "aim"]


def drill(stand: Stand, run: Training, what: Drill) -> dict[str, float]:
    """Run one training with one fault.

    :returns: `gap`, the longest time without a new step since the fault, in seconds; `lost`, number of repeated steps;
        `restarts`, number of counted restarts.
    """
    api = stand.api
    watched = Watched(api, run, f"{int(time.time())}")
    nodes = sorted(workers(api))
    if what.together:
        mark(api, nodes[:1])
    for obj in surroundings(run):
        api.apply(obj)
    api.apply(run_object(run, watched.attempt, "fresh"))
    until(f"step {BEGIN_AT}", lambda: (watched.steps() or [{"step": 0}])[-1]["step"] >= BEGIN_AT, LIMIT)
    mark(api, nodes)
    moment = time.time()
    pod = what.do(watched, stand.lab)
    until("the end", lambda: watched.status().get("terminalState"), LIMIT)
    heard = watched.look()
    done = cuts.written(stand, watched, next(node for node in nodes if node != pod["spec"]["nodeName"]))
    end = [event for event in done if event["event"] == "end"]
    if watched.status().get("terminalState") != "Completed" or not end or end[-1]["step"] != run.flags["train_steps"]:
        raise BenchError(f"The run ended {watched.status().get('terminalState')} with {end[-1:]}.")
    if what.cut:
        cuts.require_one_writer(done, moment)
    # Steps behind a cut do not count, because the waiting user cannot see them.
    steps = [event for event in (heard if what.cut else done) if event["event"] in ("step", "end")]
    return {
        "gap": longest_pause(steps, moment),
        "lost": float(sum(lost(done, each) for each in done if each["event"] == "restore")),
        "restarts": float(watched.status().get("restartsCountTowardsMax", 0)),
    }


def longest_pause(steps: Sequence[Mapping[str, Any]], moment: float) -> float:
    """Return the longest time between two new steps after a moment, in seconds; repeated steps are not new."""
    highest, at, longest = 0, 0.0, 0.0
    for event in steps:
        if event["step"] <= highest:
            continue
        if event["time"] > moment:
            longest = max(longest, event["time"] - max(at, moment))
        highest, at = event["step"], event["time"]
    return longest


def lost(events: Sequence[Mapping[str, Any]], restore: Mapping[str, Any]) -> int:
    """Return the number of reported steps that were repeated after a restore."""
    steps = [event for event in events if event["event"] in ("step", "end")]
    before = [event["step"] for event in steps if event["time"] <= restore["time"]]
    return max(0, max(before, default=0) - int(restore["step"]))


def workers(api: Api) -> list[str]:
    """Return the names of the nodes that are not control planes."""
    role = "node-role.kubernetes.io/control-plane"
    names = [node["metadata"] for node in api.list("v1", "Node")]
    return [meta["name"] for meta in names if role not in meta.get("labels", {})]


def mark(api: Api, nodes: Sequence[str]) -> None:
    """Restrict chief and ps to these nodes."""
    for node in workers(api):
        labels = {HERE: "yes" if node in nodes else None}
        path = api.path("v1", "Node", None, node)
        body = {"metadata": {"labels": labels}}
        api.call("PATCH", path, body=body, content_type="application/merge-patch+json", what=f"label of {node}")


def clean(stand: Stand, run: Training, nodes: Sequence[str]) -> None:
    """Remove the run, and restore every node."""
    for node in nodes:
        cuts.heal(stand.lab, node)
    mark(stand.api, [])
    try:
        stand.api.delete("jobset.x-k8s.io/v1alpha2", "JobSet", run.name, run.namespace)
    except KubeError as error:
        print(f"drills: {error}", file=sys.stderr)
    until("the end of the pods", lambda: not Watched(stand.api, run).pods(), LIMIT)
    until("the return of the nodes", lambda: all(cuts.ready(stand.api, node) == "True" for node in nodes), LIMIT)


def measure(stand: Stand, names: Sequence[str]) -> bool:
    """Run the drills and write the rows of those that passed; return whether all did."""
    bundle = inputs.artefacts(inputs.CACHE)
    passed = True
    for name in names:
        what, run = DRILLS[name], description(bundle, name)
        try:
            seen = drill(stand, run, what)
            if seen["lost"] > what.lost or (what.lost == 0 and seen["restarts"]):
                raise BenchError(f"{seen['lost']:.0f} steps lost, {seen['restarts']:.0f} restarts counted.")
            row = [what.words, f"{seen['gap']:.1f} s", f"{seen['lost']:.0f}", f"{seen['restarts']:.0f}", what.aim]
            page.write("drills", HEAD, [row])
        except (BenchError, KubeError, subprocess.SubprocessError) as error:
            passed = False
            print(f"drills: {name} failed: {error}", file=sys.stderr, flush=True)
        if name.startswith("node_"):
            stand.play("site.yml", limit=SITE_LIMIT)
        clean(stand, run, workers(stand.api))
    return passed


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_options(parser)
    parser.add_argument("--only", default=",".join(DRILLS), help="drills, with commas (default: all)")
    options = parser.parse_args(argv)
    names = options.only.split(",")
    if strange := set(names) - set(DRILLS):
        parser.error(f"no such drill: {', '.join(strange)}; there are {', '.join(DRILLS)}")
    try:
        with standing(options) as stand:
            return 0 if measure(stand, names) else 1
    except BenchError as error:
        print(f"drills: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
