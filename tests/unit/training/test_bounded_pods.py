"""Pods that the project adds to a run: bounded, so that quotas of a namespace admit them, and as small as the site's
rules say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.training.samples import REPLICAS, training
from trainyard.kube.placement import amount
from trainyard.site.namespace_rules import LARGEST, SMALLEST
from trainyard.trainings.data_import import job
from trainyard.trainings.jobset import run_object
from trainyard.trainings.model import Import
from trainyard.trainings.objects import surroundings
from trainyard.trainings.probe import probe, target
from trainyard.trainings.run_index import Found
from trainyard.trainings.stop import cleaner

TRAINING = training(logs={"claim": "training"}, tensorboard="registry.example.com/trainyard/tensorboard:1")
IMPORT = Import(url="https://example.org/a.zip", sha256="0" * 64, image="i", code="c")
ADDED = [
    *surroundings(TRAINING),
    *probe(TRAINING, TRAINING.decider, "kubernetes.default.svc,443", seconds=5),
    target(TRAINING, TRAINING.decider, seconds=5),
    cleaner(Found("mnist", "trainings", None, None), {"claim": "c", "folder": "/logs", "image": "i"}),
    job(TRAINING, IMPORT),
]
"""Everything that is made beside what runs a training."""


def containers(obj: Any) -> Iterator[dict[str, Any]]:
    """Containers of all pods in an object, wherever they are in it."""
    if isinstance(obj, dict):
        if isinstance(obj.get("containers"), list):
            yield from [*obj["containers"], *obj.get("initContainers", ())]
        for value in obj.values():
            yield from containers(value)
    elif isinstance(obj, list):
        for value in obj:
            yield from containers(value)


@pytest.mark.parametrize("topology", REPLICAS)
def test_every_container_declares_what_a_quota_may_bound(topology: str) -> None:
    """Kubernetes refuses a container without a request or limit for CPU or memory where the quota counts it."""
    found = [*containers(ADDED), *containers(run_object(training(topology=topology), "first"))]
    assert len(found) >= 6
    for container in found:
        for part in ("limits", "requests"):
            assert {"cpu", "memory"} <= container["resources"][part].keys(), container["name"]


def test_bounds_of_the_site_rules_are_those_of_the_pods() -> None:
    for resource in ("cpu", "memory"):
        least = min(amount(each["resources"]["requests"][resource]) for each in containers(ADDED))
        most = max(amount(each["resources"]["limits"][resource]) for each in containers(ADDED))
        assert (least, most) == (amount(SMALLEST[resource]), amount(LARGEST[resource]))
