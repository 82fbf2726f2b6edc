"""The faults that `trainyard why` must name: their injection, their codes, and when they become visible."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import inputs
import why_injections as do
from why_injections import DNS, FULL, JOBSET
from why_lab import WORKER, Scene, asking, on
from why_seen import has_begun, is_lost, is_made, is_over, is_refused, is_silent, is_unplaced, is_without_image

from trainyard.trainings.model import Training
from trainyard.why.snapshot import Snapshot

LONG: Mapping[str, Any] = {"train_steps": 200_000, "checkpoint_every": 0, "report_every": 20}
NOTHING: Callable[[Scene], None] = lambda _: None  # noqa: E731


@dataclass(frozen=True)
class Fault:
    """One fault.

    :param codes: valid names; the first cause must have one of them.
    :param seen: whether it is visible from outside; the time counts from there.
    :param knobs: settings of the training.
    :param changes: changes of its pods, see `why_lab.altered`.
    :param asleep: roles whose programs only sleep, because nothing depends on them.
    :param before: action before the run is submitted.
    :param around: action on the run's supporting objects, before it is submitted.
    :param after: action when it trains; without it, nothing is waited for.
    :param undo: action that undoes them, in addition to deleting the run and the added objects.
    :param own_volume: whether the run has its files in `FULL`.
    """

    codes: tuple[str, ...]
    seen: Callable[[Snapshot], bool]
    knobs: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    asleep: Sequence[str] = ("chief", "ps", "worker")
    before: Callable[[Scene], None] = NOTHING
    around: Callable[[Scene], None] = NOTHING
    after: Callable[[Scene], None] | None = None
    undo: Callable[[Scene], None] = NOTHING
    own_volume: bool = False


def description(bundle: Mapping[str, Mapping[str, Any]], name: str) -> Training:
    """Return the training for a fault."""
    what = FAULTS[name]
    knobs: dict[str, Any] = {
        "run": f"why-{name.replace('_', '-')}",
        "train_steps": 400,
        "accuracy_bound": 0,
        **what.knobs,
    }
    run = inputs.training(bundle, knobs, claim="" if what.own_volume else "training")
    return replace(run, logs=replace(run.logs, node=WORKER, path=FULL)) if what.own_volume else run


NO_IMAGE = {"image": f"{inputs.REGISTRY}/tensorflow:why-there-is-none", "imagePullPolicy": "Always"}
GPU = {
    "pod": on(WORKER),
    "container": asking(**{"nvidia.com/gpu": "1", "cpu": "250m", "memory": "512Mi"}),
}
ROOT = {"securityContext": {"runAsUser": 0, "runAsNonRoot": False}}

FAULTS = {
    "too_large": Fault(("never_fits",), is_unplaced, changes={"container": asking(cpu="900", memory="512Mi")}),
    "held": Fault(("held_by",), is_unplaced, before=do.hold, changes={"container": asking(cpu="700m", memory="512Mi")}),
    "cordon": Fault(("cordoned",), is_unplaced, changes={"pod": on(WORKER)}, before=do.on_worker(unschedulable=True),
                    undo=do.on_worker(unschedulable=None)),
    "taint": Fault(("tainted",), is_unplaced, changes={"pod": on(WORKER)},
                   before=lambda scene: do.taints(scene, [{"key": "trainyard.dev/why", "effect": "NoSchedule"}]),
                   undo=lambda scene: do.taints(scene, [])),
    "image": Fault(("image_missing",), is_without_image, changes={"container": NO_IMAGE}),
    "registry": Fault(("registry_down",), is_without_image, changes={"container": NO_IMAGE}, before=do.registry("stop"),
                      undo=do.registry("start")),
    "claim": Fault(("claim_unbound",), is_unplaced, before=lambda scene: scene.put(do.claim("why-unbound")),
                   knobs={"chief": {"volumes": [{"name": "why", "mount": "/why", "claim": "why-unbound"}]}}),
    "volume_node": Fault(("volume_node",), is_unplaced, before=do.gone_volume,
                         knobs={"chief": {"volumes": [{"name": "why", "mount": "/why", "claim": "why-gone"}]}}),
    "quota": Fault(("quota",), is_refused, around=lambda scene: scene.put(do.quota(scene.run.namespace))),
    "root": Fault(("pod_security",), is_refused, changes={"pod": ROOT}),
    "jobset": Fault(("controller_down",), is_refused, asleep=(), knobs=LONG, after=do.without_controller,
                    undo=lambda scene: scene.scale(*JOBSET, 2)),
    "scheduler": Fault(("scheduler_down",), is_made, before=do.without_scheduler, undo=do.with_scheduler),
    "dns": Fault(("dns_down",), has_begun, asleep=(), before=lambda scene: scene.scale(*DNS, 0),
                 undo=lambda scene: scene.scale(*DNS, 2)),
    "kubelet": Fault(("node_not_ready",), is_lost, asleep=(), knobs=LONG, changes={"pod": on(WORKER)},
                     after=do.kubelet("stop"), undo=do.kubelet("start")),
    # It is silent until the run's watchdog ends the chief, which then names the lost task.
    "ps_stopped": Fault(("silent", "peer_unreachable"), is_silent, asleep=(), knobs=LONG,
                        after=lambda scene: scene.signal("ps", "SIGSTOP")),
    "policy": Fault(("policy_blocks",), has_begun, asleep=(), around=do.cut_policy),
    "memory": Fault(("oom_killed",), is_over, asleep=("chief", "ps"),
                    changes={"container": asking(cpu="250m", memory="64Mi")}),
    "full": Fault(("disk_full",), is_over, asleep=(), before=do.small_volume, undo=do.no_small_volume, own_volume=True),
    "bound": Fault(("below_bound",), is_over, asleep=(), knobs={"train_steps": 20, "accuracy_bound": 0.999}),
    "input": Fault(("refused_input",), is_over, asleep=(), knobs={"batch_size": 1_000_000}),
    "gpu_held": Fault(("held_by",), is_unplaced, changes=GPU, before=do.hold_gpus),
    "gpu_unhealthy": Fault(("gpu_unhealthy",), is_unplaced, changes=GPU, before=do.break_gpus, undo=do.mend_gpus),
    "gpu_skew": Fault(("gpu_skew",), is_unplaced, changes=GPU, before=do.other_driver, undo=do.same_driver),
}  # fmt: skip
"""The order matters: faults after which a node must be repaired are last."""
