"""Shared storage that all nodes have, with claims where the trainings are."""

from __future__ import annotations

import pytest

from trainyard.site.site_model import Setting, Site
from trainyard.site.storage_rules import STORAGE_RULES

CLUSTER = {"cluster": ["a", "b"]}
CATALOGUE = {"mnist_ps": {"description": "MNIST", "kind": "training"}}
BACKEND = Setting("storage_backend", "shared_path", ("a", "b"))


def training(**knobs: str) -> Setting:
    return Setting("workloads_trainings", [{"workload": "mnist_ps", **knobs}], ("a", "b"))


def refusals(*settings: Setting) -> list[str]:
    site = Site(groups=CLUSTER, settings=list(settings), catalogue=CATALOGUE)
    return [str(problem) for rule in STORAGE_RULES for problem in rule(site)]


@pytest.mark.parametrize(
    "settings",
    [
        [],
        [BACKEND, training()],
        [training(namespace="team-a")],
        [BACKEND, Setting("storage_namespace", "team-a", ("a", "b")), training(namespace="team-a")],
        [Setting("storage_backend", "", ("a",)), training(namespace="team-a")],
        [Setting("efs_mount_server", "10.1.0.5", ("a",), controller=False)],
        [Setting("storage_timeout", 300, ("a",), controller=False)],
    ],
)
def test_sites_that_can_be(settings: list[Setting]) -> None:
    assert refusals(*settings) == []


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            [Setting("storage_backend", "shared_path", ("a",)), Setting("storage_backend", "", ("b",))],
            'variable storage_backend (b) is "": other hosts have "shared_path". Set it once',
        ),
        (
            [Setting("storage_backend", "shared_path", ("a",))],
            "the host b of the cluster does not have it",
        ),
        (
            [Setting("storage_claims", {"training": "1Gi"}, ("a", "b"), controller=False)],
            "the controller, which creates the file system and the claims, does not have it. Set it for all hosts",
        ),
        (
            [BACKEND, training(namespace="team-a")],
            "the claims of the shared storage are in trainings. Set storage_namespace to the namespace of the training",
        ),
    ],
)
def test_sites_that_cannot_be(settings: list[Setting], expected: str) -> None:
    assert any(expected in each for each in refusals(*settings))
