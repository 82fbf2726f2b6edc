"""Which image a role with GPUs runs, and what its program is told."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.catalogue.test_complete import BUNDLE, ENTRY
from trainyard.trainings.resolve import resolve
from trainyard.trainings.site_images import Defaults
from trainyard.trainings.spec import parse_training

GPU_ENTRY = {
    **ENTRY,
    "image": {**ENTRY["image"], "gpu": {"repository": "runtime-gpu", "artefact": "image_runtime_gpu"}},
    "flags": {**ENTRY["flags"], "require_gpu": "auto"},
}
GPU_BUNDLE = {**BUNDLE, "image_runtime_gpu": {"digest": "sha256:3"}}


@pytest.mark.parametrize(
    ("wanted", "requires", "of_worker", "flag"),
    [
        ({}, True, "runtime@sha256:1", "auto"),
        ({"worker": {"gpus": 1}}, True, "runtime-gpu@sha256:3", "auto"),
        ({"worker": {"limits": {"nvidia.com/gpu": 1}}}, True, "runtime-gpu@sha256:3", "auto"),
        # GPUs that do not compute, as the lab's.
        ({"worker": {"gpus": 1}}, False, "runtime@sha256:1", False),
        ({"worker": {"gpus": 1}, "require_gpu": True}, False, "runtime@sha256:1", True),
        ({"worker": {"gpus": 1, "image": "mine/runtime:1"}}, True, "mine/runtime:1", "auto"),
    ],
)
def test_pods_with_gpus_that_compute_run_the_image_with_cuda(
    wanted: dict, requires: bool, of_worker: str, flag: Any
) -> None:
    site = Defaults("r", GPU_BUNDLE, {"claim": "c"}, cuda={"image_runtime_gpu": "12.9"})
    resolved = resolve({"workload": "my_ps", **wanted}, GPU_ENTRY, require_gpu=requires)
    run = parse_training(resolved.bound(site))
    assert run.roles["worker"].image.removeprefix("r/") == of_worker
    assert run.roles["worker"].cuda == ("12.9" if "gpu@" in of_worker else "")
    assert {run.roles[name].image for name in ("chief", "ps")} == {"r/runtime@sha256:1"}
    assert run.flags["require_gpu"] == flag
    made = [each["artefact"] for each in resolved.images]
    assert ("image_runtime_gpu" in made) == ("gpu@" in of_worker)


def test_programs_that_do_not_know_the_flag_do_not_get_it() -> None:
    assert "require_gpu" not in resolve({"workload": "my_ps"}, ENTRY, require_gpu=False).description["flags"]
