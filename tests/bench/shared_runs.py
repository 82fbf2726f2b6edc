"""The runs of shared.py, and the evaluation of their files on the claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import input_rate
from drill_kinds import HERE
from drills import longest_pause, lost
from timed import BenchError

RUN, FOLDER = "shared", "shared-mnist"
STEPS, MORE_STEPS, CHECKPOINT_EVERY = 200, 1_500, 100
OFF_AT = 500
"""Step of the longer training at which its chief's node is switched off."""
FIRST: dict[str, Any] = {
    "workload": "cnn_ps",
    "run": RUN,
    "data": {"source": "import", "folder": FOLDER},
    "train_steps": STEPS,
    "checkpoint_every": CHECKPOINT_EVERY,
    "accuracy_bound": 0,
    # All of its pods must fit on the remaining node.
    "requests": {"cpu": "50m"},
    "chief": {"node_selector": {HERE: "yes"}},
}
LONGER = {**FIRST, "train_steps": MORE_STEPS}
JUDGED: dict[str, Any] = {
    "workload": "own",
    "run": "shared-judged",
    "code": {"folder": str(Path(__file__).with_name("loaded"))},
    "command": f"python main.py /logs/{RUN}/export",
    "data": {"source": "claim", "claim": "datasets", "folder": FOLDER},
}
RATE: dict[str, Any] = {
    "workload": "own",
    "run": "shared-rate",
    "code": {"folder": str(input_rate.PROGRAM)},
    "command": "python main.py /out 3",
    "worker": {"volumes": [{"name": "out", "mount": "/out", "claim": "datasets", "read_only": False}]},
}

Event = Mapping[str, Any]


def on(node: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run of one worker, only on this node."""
    worker = {**(entry.get("worker") or {}), "node_selector": {"kubernetes.io/hostname": node}}
    return {**entry, "worker": worker}


def require_output(files: Sequence[str], attempt: str) -> None:
    """Check the files that a run has left.

    :param files: paths in its folder.
    :raises BenchError: its last checkpoint, its events, its metrics or its model are missing.
    """
    begins = (f"attempts/{attempt}/metrics.jsonl", f"attempts/{attempt}/train/events.", "export/saved_model.pb")
    missing = [begin for begin in begins if not any(name.startswith(begin) for name in files)]
    if not any(name.startswith("checkpoints/") and name.endswith(f"/ckpt-{STEPS}.index") for name in files):
        missing.append(f"a checkpoint of step {STEPS}")
    if missing:
        raise BenchError(f"On the other node the run's folder lacks {', '.join(missing)}.")


def require_steps(kept: Mapping[str, Any], steps: int) -> None:
    """Check that a run has ended well with its steps.

    :raises BenchError: it has not.
    """
    if (kept.get("result"), kept.get("steps")) != ("no_bound", steps):
        raise BenchError(f"The run ended with {kept.get('result')} at step {kept.get('steps')} of {steps}.")


def account(told: Sequence[Event], moment: float) -> dict[str, float]:
    """Return figures of the events of the longer training's chiefs; see `longer`.

    :param moment: time at which the node was switched off, seconds since the epoch.
    :raises BenchError: the first did not continue from the last step of the previous run, or none has replaced it.
    """
    restored = [event for event in told if event["event"] == "restore"]
    if not restored or restored[0]["step"] != STEPS or restored[0]["time"] > moment:
        raise BenchError(f"The longer training continued from {restored[:1]}, not from step {STEPS}.")
    after = [event for event in restored if event["time"] > moment]
    if not after:
        raise BenchError("No chief has continued after the node was switched off.")
    steps = [event for event in told if event["event"] in ("step", "end")]
    return {
        "from": float(restored[0]["step"]),
        "gap": longest_pause(steps, moment),
        "lost": float(sum(lost(told, each) for each in after)),
    }
