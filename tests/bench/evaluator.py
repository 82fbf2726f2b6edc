#!/usr/bin/env python3
"""Prove in pods what the engine's tests prove in processes: the evaluator, the exported model, data as records.

    .venv/bin/python tests/bench/evaluator.py [--inventory inventories/lab --lab trainyard]

Nothing is measured. It fails if something differs from the documentation.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import inputs
from stand import Stand, add_options, standing
from timed import BenchError

from trainyard.kube.api import KubeError
from trainyard.trainings.roles import EXIT_STOPPED, STOPPED

STEPS, CHECKPOINT_EVERY = 600, 100
BOUND = 0.9
LEAST_JUDGED = 3
"""Minimum of judged checkpoints, out of six: a slow evaluator skips some."""
DATA = {"source": "image", "image": {"repository": "mnist-data", "artefact": "image_mnist"}}
JUDGED = {
    "workload": "cnn_ps",
    "run": "judged",
    "evaluator": 1,
    "train_steps": STEPS,
    "checkpoint_every": CHECKPOINT_EVERY,
    "accuracy_bound": BOUND,
}
LOADED = {
    "workload": "own",
    "run": "loaded",
    "code": {"folder": str(Path(__file__).with_name("loaded"))},
    "command": "python main.py /logs/judged/export",
    "data": DATA,
}
WRITTEN = {
    "workload": "own",
    "run": "records-written",
    "code": {"repository": "workloads", "artefact": "image_workloads"},
    "command": "python -m engine.data.idx /data /out/mnist-records",
    "data": DATA,
    "worker": {"volumes": [{"name": "out", "mount": "/out", "claim": "datasets", "read_only": False}]},
}
READ = {
    "workload": "cnn_ps",
    "run": "records-read",
    "data": {"source": "claim", "claim": "datasets", "folder": "mnist-records"},
    "train_steps": STEPS,
    "accuracy_bound": BOUND,
}
NODE = "worker1"
AS_GOOD = 0.0005
"""Maximum difference of two evaluations of one model: five of 10,000 images."""

Event = Mapping[str, Any]


def require_judged(chief: Sequence[Event], evaluator: Sequence[Event]) -> None:
    """Check which process evaluated which checkpoint.

    :raises BenchError: the chief evaluated before its end, or the evaluator missed checkpoints, such as the last one.
    """
    early = [event["step"] for event in chief if event["event"] == "evaluate" and event["step"] != STEPS]
    if early:
        raise BenchError(f"The chief has evaluated at step {early[0]}, though there was an evaluator.")
    judged = [event["step"] for event in evaluator if event["event"] == "evaluate"]
    if len(judged) < LEAST_JUDGED or judged != sorted(set(judged)) or judged[-1] != STEPS:
        raise BenchError(f"The evaluator has judged {judged}, of a checkpoint every {CHECKPOINT_EVERY} to {STEPS}.")


def require_best(account: Mapping[str, Any], evaluator: Sequence[Event], files: Sequence[str]) -> None:
    """Check the checkpoint that is kept as the best.

    :param files: names in the run's folder, relative to it.
    :raises BenchError: it is not the best of the judged ones, or its checkpoint or its events are missing.
    """
    scores = {event["step"]: event["accuracy"] for event in evaluator if event["event"] == "evaluate"}
    best = account["best_step"]
    if scores.get(best) != max(scores.values()) or f"best/ckpt-{best}.index" not in files:
        raise BenchError(f"Step {best} is kept as the best of {scores}, or best/ckpt-{best}.index is missing.")
    for part in ("train", "eval"):
        if not any(f"/{part}/events.out.tfevents." in name for name in files):
            raise BenchError(f"There are no events in {part}/.")


def judged(stand: Stand) -> float:
    """Run a training with an evaluator, and return its accuracy."""
    stand.forget("judged")
    stand.train(JUDGED)
    kept = stand.record("judged")
    if kept["result"] != "passed" or kept["roles"].get("evaluator-0") not in (0, EXIT_STOPPED, STOPPED):
        raise BenchError(f"The training with an evaluator ended with {kept['result']}, its pods with {kept['roles']}.")
    attempt = f"{inputs.SHARED}/judged/attempts/{kept['attempt']}"
    chief, evaluator = (lines(stand, f"{attempt}/{name}.jsonl") for name in ("metrics", "evaluator"))
    require_judged(chief, evaluator)
    account = json.loads(stand.on_node(NODE, "cat", f"{inputs.SHARED}/judged/evaluations.json"))
    files = stand.on_node(NODE, "find", f"{inputs.SHARED}/judged", "-printf", "%P\\n").splitlines()
    require_best(account, evaluator, files)
    count = sum(event["event"] == "evaluate" for event in evaluator)
    print(
        f"evaluator: {count} checkpoints judged beside the training, the best of step {account['best_step']}",
        flush=True,
    )
    return float(kept["accuracy"])


def loaded(stand: Stand, accuracy: float) -> None:
    """Use the exported model in a pod without our code."""
    stand.train(LOADED, resume="fresh")
    found = stand.record("loaded")["accuracy"]
    if found is None or abs(found - accuracy) > AS_GOOD:
        raise BenchError(f"The exported model has the accuracy {found}, the training ended with {accuracy}.")
    print(f"evaluator: the exported model has the training's accuracy, {found:.4f}", flush=True)


def records(stand: Stand) -> None:
    """Write the data set as records to a claim with a pod, and train on them."""
    stand.train(WRITTEN, resume="fresh")
    stand.forget("records-read")
    stand.train(READ)
    kept = stand.record("records-read")
    if (kept["result"], kept["steps"]) != ("passed", STEPS):
        raise BenchError(f"The training on records ended with {kept['result']} at step {kept['steps']} of {STEPS}.")
    print(f"evaluator: from records {kept['accuracy']:.4f} after {STEPS} steps", flush=True)


def lines(stand: Stand, path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stand.on_node(NODE, "cat", path).splitlines()]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_options(parser)
    try:
        with standing(parser.parse_args(argv)) as stand:
            loaded(stand, judged(stand))
            records(stand)
            for entry in (JUDGED, LOADED, WRITTEN, READ):
                stand.forget(str(entry["run"]))
    except (BenchError, KubeError) as error:
        print(f"evaluator: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
