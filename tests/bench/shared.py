#!/usr/bin/env python3
"""Prove that trainings depend on the claims and on no node. Writes tables to docs/benchmarks.md.

    .venv/bin/python tests/bench/shared.py [--inventory inventories/lab --lab trainyard]

The data is imported to `datasets`, and a training reads it there. A pod on another node judges the resulting model on
`training`. A longer training on that node continues from the last step, and continues elsewhere when the node is
switched off permanently. Finally a pod measures the read and write rate of the claim.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cuts
import input_rate
import inputs
import page
from drills import mark, workers
from evaluator import AS_GOOD
from mishaps import Watched, node_container, switch_off, until
from shared_runs import (
    CHECKPOINT_EVERY,
    FIRST,
    FOLDER,
    JUDGED,
    LONGER,
    MORE_STEPS,
    OFF_AT,
    RATE,
    RUN,
    STEPS,
    account,
    on,
    require_output,
    require_steps,
)
from stand import SITE_LIMIT, Stand, add_options, standing
from timed import BenchError

from trainyard.kube.api import KubeError

DATASETS = str(Path(inputs.SHARED).with_name("datasets"))
LIMIT = 600.0
"""Seconds for a pod, a step, or the end of a run."""
AIM_SECONDS = 120
HEAD = ["a training on the claims", "measured", "aim"]


def submitted(stand: Stand, entry: Mapping[str, Any], node: str) -> tuple[Watched, str]:
    """Submit a run whose chief must be on a given node; return the run, and the output of the call.

    :raises BenchError: the chief is elsewhere.
    """
    # Only the names in this description are used.
    run = inputs.training(inputs.artefacts(inputs.CACHE), {"run": RUN}, claim="training")
    mark(stand.api, [node])
    _, said = stand.train(entry, wait="false")
    watched = Watched(stand.api, run, stand.record(RUN)["attempt"])

    def chiefs() -> list[str]:
        pods = [pod for pod in watched.pods("chief") if (pod.get("status") or {}).get("phase") == "Running"]
        return [pod["spec"]["nodeName"] for pod in pods]

    if (there := until(f"a chief of {RUN}", chiefs, LIMIT)) != [node]:
        raise BenchError(f"The chief of {RUN} is on {', '.join(there)}, not on {node}.")
    return watched, said


def first(stand: Stand, node: str, other: str) -> float:
    """Train on imported data; return the accuracy according to a pod on the other node, which has the model and the
    data.

    :raises BenchError: the data was not imported, the other node lacks files of the run, or the accuracies differ.
    """
    _, said = submitted(stand, FIRST, node)
    if f"data of {RUN}: imported" not in said:
        raise BenchError(f"The data of {RUN} was not imported.")
    stand.train(FIRST)
    kept = stand.record(RUN)
    require_steps(kept, STEPS)
    files = stand.on_node(other, "find", f"{inputs.SHARED}/{RUN}", "-type", "f", "-printf", "%P\\n").splitlines()
    require_output(files, str(kept["attempt"]))
    stand.train(on(other, JUDGED), resume="fresh")
    found = stand.record(str(JUDGED["run"]))["accuracy"]
    if found is None or abs(found - float(kept["accuracy"])) > AS_GOOD:
        raise BenchError(f"On {other} the exported model has the accuracy {found}, the training {kept['accuracy']}.")
    return float(found)


def longer(stand: Stand, node: str, other: str) -> dict[str, float]:
    """Continue the run on the other node, and switch that node off.

    :returns: `from`, the step that it continued from; `gap`, the longest time in seconds without a new step after that;
        `lost`, number of repeated steps.
    :raises BenchError: it started from scratch, it did not end on the remaining node, or the other was on again.
    """
    watched, _ = submitted(stand, LONGER, other)
    until(f"step {OFF_AT}", lambda: (watched.steps() or [{"step": 0}])[-1]["step"] >= OFF_AT, LIMIT)
    mark(stand.api, [node, other])
    moment = time.time()
    off = switch_off(watched, stand.lab, "chief")
    stand.train(LONGER)
    require_steps(stand.record(RUN), MORE_STEPS)
    if is_on(node_container(stand.lab, off)):
        raise BenchError(f"{other} was on again before the end of the run, so nothing was proven.")
    return account(cuts.written(stand, watched, node), moment)


def is_on(container: str) -> bool:
    state = ["podman", "inspect", "--format={{.State.Running}}", container]
    return subprocess.run(state, check=True, capture_output=True, text=True, timeout=60).stdout.strip() == "true"


def measure(stand: Stand) -> bool:
    """Run everything, and write the tables; return whether the run continued in time."""
    node, other = sorted(workers(stand.api))[:2]
    forget(stand, other)
    try:
        accuracy = first(stand, node, other)
        print(f"shared: the model on {other} is that of {node}, {accuracy:.4f}", flush=True)
        seen = longer(stand, node, other)
    finally:
        # This starts a node that is off; otherwise it changes nothing.
        stand.play("site.yml", limit=SITE_LIMIT)
        mark(stand.api, [])
    met = seen["gap"] <= AIM_SECONDS and seen["lost"] <= CHECKPOINT_EVERY
    rows = [
        ["its model, judged by a pod on another node", f"accuracy {accuracy:.4f}", "the training's own"],
        ["a longer one on another node continues from step", f"{seen['from']:.0f}", f"{STEPS}"],
        [
            "that node switched off for good: longest time without a new step",
            f"{seen['gap']:.1f} s",
            f"{AIM_SECONDS} s",
        ],
        ["steps done twice", f"{seen['lost']:.0f}", f"{CHECKPOINT_EVERY}"],
        ["steps at its end", f"{MORE_STEPS}", "all"],
    ]
    page.write("shared", HEAD, rows)
    stand.train(on(node, RATE), resume="fresh")
    logs = [Path(path).read_text(encoding="utf-8") for path in stand.record(str(RATE["run"]))["logs"]]
    page.write("input_rate", input_rate.HEAD, [input_rate.row("`shared_path`, by a pod of the lab", "".join(logs))])
    forget(stand, other)
    return met


def forget(stand: Stand, node: str) -> None:
    """Remove the runs, and the data that was imported for them."""
    for entry in (FIRST, JUDGED, RATE):
        stand.forget(str(entry["run"]))
    stand.on_node(node, "rm", "-rf", f"{DATASETS}/{FOLDER}", f"{DATASETS}/.import-{FOLDER}")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_options(parser)
    try:
        with standing(parser.parse_args(argv)) as stand:
            return 0 if measure(stand) else 1
    except (BenchError, KubeError, subprocess.SubprocessError) as error:
        print(f"shared: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
