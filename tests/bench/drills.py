#!/usr/bin/env python3
"""Do to a running training what happens to servers, and measure what it costs. Writes a table to docs/benchmarks.md.

    .venv/bin/python tests/bench/drills.py [--only worker_kill,node_off] [--inventory inventories/lab --lab trainyard]

Each drill is a run of its own, and fails if what was done did not happen, or if the run does not end with exactly its
steps. A node that was switched off is started again afterwards, by site.yml.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cuts
import inputs
import page
from ansible.module_utils.trainyard.kube.api import Api, KubeError
from ansible.module_utils.trainyard.training.jobset import run_object
from ansible.module_utils.trainyard.training.model import Training
from ansible.module_utils.trainyard.training.objects import surroundings
from mishaps import Pod, Watched, evict, kill, switch_off, until
from stand import SITE_LIMIT, Stand, add_options, standing
from timed import BenchError

STEPS, LONG_STEPS = 6_000, 20_000
"""Of a run; the longer one is not done yet when a chief that was cut off is overtaken, a minute and a half later."""
CHECKPOINT_EVERY = 500
BEGIN_AT = 1_200
"""Step at which the drill happens, after two checkpoints."""
LIMIT = 600.0
"""Seconds for one drill, before the mishap and after it."""
HERE = "trainyard.dev/drill"
"""Label of the nodes on which chief and ps of a drill may be."""
HEAD = ["what happened", "longest time without a new step", "steps done twice", "counted restarts", "aim"]


@dataclass(frozen=True)
class Drill:
    """What is done to a run, and what it may cost.

    :param words: for the table.
    :param do: does it; fails if it did not happen.
    :param seconds: aim for the longest time without a new step.
    :param lost: steps that may be done twice. Where none may, no restart may be counted either.
    :param together: chief and ps begin on one node, which nothing but a lost node takes them from.
    :param cut: the chief's node keeps its power and its storage; who has written there is looked at afterwards.
    """

    words: str
    do: Callable[[Watched, str], Pod]
    seconds: int
    lost: int = 0
    together: bool = False
    cut: bool = False

    @property
    def aim(self) -> str:
        return f"{self.seconds} s, {self.lost}"


DRILLS = {
    "worker_kill": Drill("worker, signal 9", lambda watched, lab: kill(watched, lab, "worker"), 5),
    "ps_kill": Drill("ps, signal 9", lambda watched, lab: kill(watched, lab, "ps"), 30, CHECKPOINT_EVERY),
    "chief_kill": Drill("chief, signal 9", lambda watched, lab: kill(watched, lab, "chief"), 30, CHECKPOINT_EVERY),
    "worker_evict": Drill("worker, eviction", lambda watched, lab: evict(watched, lab, "worker"), 30),
    "ps_evict": Drill("ps, eviction", lambda watched, lab: evict(watched, lab, "ps"), 30),
    "chief_evict": Drill("chief, eviction", lambda watched, lab: evict(watched, lab, "chief"), 30),
    "node_off_worker": Drill(
        "node of a worker, power cut",
        lambda watched, lab: switch_off(watched, lab, "worker", apart=True), 120, together=True,
    ),
    "node_off": Drill(
        "node of the chief, power cut", lambda watched, lab: switch_off(watched, lab, "chief"), 120, CHECKPOINT_EVERY
    ),
    "node_back": Drill(
        "node of the chief, power cut; it comes back while its pods run elsewhere",
        lambda watched, lab: cuts.off_and_back(watched, lab, "chief"), 120, CHECKPOINT_EVERY,
    ),
    "net_cut": Drill(
        "node of chief and ps, network cut, storage not",
        lambda watched, lab: cuts.cut(watched, lab, "chief"), 120, CHECKPOINT_EVERY, together=True, cut=True,
    ),
    "net_back": Drill(
        "node of chief and ps, network cut, storage not; it comes back while its pods run elsewhere",
        lambda watched, lab: cuts.cut_and_back(watched, lab, "chief"), 120, CHECKPOINT_EVERY, together=True, cut=True,
    ),
}  # fmt: skip


def drill(stand: Stand, run: Training, what: Drill) -> dict[str, float]:
    """One run with one mishap.

    :returns: `gap`, the longest time without a new step from the mishap on, in seconds; `lost`, steps that were done
        twice; `restarts` that count.
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
    told = watched.look()
    end = [event for event in told if event["event"] == "end"]
    if watched.status().get("terminalState") != "Completed" or not end or end[-1]["step"] != run.flags["train_steps"]:
        raise BenchError(f"The run ended {watched.status().get('terminalState')} with {end[-1:]}.")
    steps = [event for event in told if event["event"] in ("step", "end")]
    done = told
    if what.cut:
        # The cluster has not heard what was done behind the cut.
        done = cuts.written(stand, watched, next(node for node in nodes if node != pod["spec"]["nodeName"]))
        cuts.require_one_writer(done, moment)
    return {
        "gap": longest_pause(steps, moment),
        "lost": float(sum(lost(done, each) for each in done if each["event"] == "restore")),
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


def lost(events: Sequence[Mapping[str, Any]], restore: Mapping[str, Any]) -> int:
    """Steps that had been reported and were done again after a restore."""
    steps = [event for event in events if event["event"] in ("step", "end")]
    before = [event["step"] for event in steps if event["time"] <= restore["time"]]
    return max(0, max(before, default=0) - int(restore["step"]))


def workers(api: Api) -> list[str]:
    """Names of the nodes that are no control plane."""
    role = "node-role.kubernetes.io/control-plane"
    names = [node["metadata"] for node in api.list("v1", "Node")]
    return [meta["name"] for meta in names if role not in meta.get("labels", {})]


def mark(api: Api, nodes: Sequence[str]) -> None:
    """Let chief and ps be on these nodes, and on no others."""
    for node in workers(api):
        labels = {HERE: "yes" if node in nodes else None}
        path = api.path("v1", "Node", None, node)
        body = {"metadata": {"labels": labels}}
        api.call("PATCH", path, body=body, content_type="application/merge-patch+json", what=f"label of {node}")


def description(bundle: Mapping[str, Mapping[str, Any]], name: str) -> Training:
    """The training that a drill is done to."""
    what = DRILLS[name]
    knobs: dict[str, Any] = {"run": f"drill-{name.replace('_', '-')}", "checkpoint_every": CHECKPOINT_EVERY}
    knobs |= {"train_steps": LONG_STEPS if what.cut else STEPS, "accuracy_bound": 0, "timeout": 0}
    if what.together:
        knobs |= {role: {"node_selector": {HERE: "yes"}} for role in ("chief", "ps")}
    return inputs.training(bundle, knobs, claim="training")


def clean(stand: Stand, run: Training, nodes: Sequence[str]) -> None:
    """Take the run away, and give every node back what it had."""
    for node in nodes:
        cuts.heal(stand.lab, node)
    mark(stand.api, [])
    try:
        stand.api.delete("jobset.x-k8s.io/v1alpha2", "JobSet", run.name, run.namespace)
    except KubeError as error:
        print(f"drills: {error}", file=sys.stderr)
    until("the end of the pods", lambda: not Watched(stand.api, run).pods(), 180)


def measure(stand: Stand, names: Sequence[str]) -> bool:
    """Do the drills and write the rows of those that passed; whether all did."""
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
