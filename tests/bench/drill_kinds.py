"""The drills: faults of a running training, their maximum cost, and the training itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import cuts
import inputs
from mishaps import Pod, Watched, evict, kill, switch_off

from trainyard.trainings.model import Training

STEPS, LONG_STEPS = 6_000, 20_000
"""Steps of a run; the longer one is still running when a chief that was cut off is overtaken, after 90 s."""
CHECKPOINT_EVERY = 500
HERE = "trainyard.dev/drill"
"""Label of the nodes on which chief and ps of a drill may run."""


@dataclass(frozen=True)
class Drill:
    """A fault of a run, and its maximum cost.

    :param words: text for the table.
    :param do: causes the fault; fails if it did not occur.
    :param seconds: aim for the longest time without a new step.
    :param lost: steps that may be repeated. If 0, no restart may be counted either.
    :param together: whether chief and ps start on one node, which they leave only if the node is lost.
    :param cut: whether the chief's node keeps its power and storage; then its written files are checked afterwards.
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


def description(bundle: Mapping[str, Mapping[str, Any]], name: str) -> Training:
    """Return the training of a drill."""
    what = DRILLS[name]
    knobs: dict[str, Any] = {"run": f"drill-{name.replace('_', '-')}", "checkpoint_every": CHECKPOINT_EVERY}
    knobs |= {"train_steps": LONG_STEPS if what.cut else STEPS, "accuracy_bound": 0, "timeout": 0}
    if what.together:
        knobs |= {role: {"node_selector": {HERE: "yes"}} for role in ("chief", "ps")}
    return inputs.training(bundle, knobs, claim="training")
