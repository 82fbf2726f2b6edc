"""One refusal a row: GPU hosts that cannot be, and trainings that ask for GPUs that no node has."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.site.gpus import GPU_RULES
from trainyard.site.model import Setting, Site

CATALOGUE = {
    "mnist_ps": {
        "description": "MNIST",
        "kind": "training",
        "topology": "parameter_server",
        "image": {"repository": "tensorflow", "artefact": "image_tensorflow"},
        "command": ["python"],
        "limits": {"cpu": "1", "memory": "1Gi"},
        "worker": {"replicas": 2},
    }
}
GROUPS = {"cluster": ["cp1", "w1", "w2"], "gpu_nodes": ["w1", "w2"], "builders": ["b1"]}


def training(**knobs: Any) -> Setting:
    return Setting("workloads_trainings", [{"workload": "mnist_ps", **knobs}])


def refusals(*settings: Setting, **groups: list[str]) -> list[str]:
    site = Site(groups={**GROUPS, **groups}, settings=list(settings), catalogue=CATALOGUE)
    return [str(problem) for rule in GPU_RULES for problem in rule(site)]


def gpus(host: str, count: int) -> Setting:
    return Setting("device_plugin_gpus", count, (host,))


@pytest.mark.parametrize(
    ("settings", "groups"),
    [
        ([], {}),
        ([], {"gpu_nodes": ["w1", "b1"]}),
        ([training(worker={"gpus": 1})], {}),
        ([training(worker={"gpus": 2}), gpus("w1", 2), gpus("w2", 1)], {}),
        # Of one node nobody says how many it has.
        ([training(worker={"gpus": 8}), gpus("w1", 2)], {}),
        ([Setting("device_plugin_replicas", 4, ("w1",))], {}),
        ([Setting("nvidia_runtime_version", "1.19.1", ("w1",)), Setting("nvidia_runtime_version", "v1.20.1")], {}),
        ([Setting("nvidia_driver_branch", "580", ("w1",)), Setting("nvidia_driver_branch", "550")], {}),
        ([Setting("nvidia_driver_branch", "470")], {"gpu_nodes": []}),
    ],
)
def test_sites_that_can_be(settings: list[Setting], groups: dict[str, list[str]]) -> None:
    assert refusals(*settings, **groups) == []


@pytest.mark.parametrize(
    ("settings", "groups", "said"),
    [
        ([], {"gpu_nodes": ["w1", "x1"]}, "host x1 is in gpu_nodes, and in no other group"),
        (
            [training(worker={"gpus": 1})],
            {"gpu_nodes": ["b1"]},
            "workloads_trainings[0].gpus is 1: no node of this site has a GPU",
        ),
        ([training(limits={"nvidia.com/gpu": 1})], {"gpu_nodes": []}, "Put the hosts with GPUs into gpu_nodes"),
        (
            [training(worker={"gpus": 4}), gpus("w1", 1), gpus("w2", 2)],
            {},
            ".gpus is 4: no node has as many; the largest, w2, has 2. Ask for 2 or fewer.",
        ),
        ([Setting("device_plugin_replicas", 1, ("w1",))], {}, "device_plugin_replicas (w1) is 1: sharing is between"),
        ([Setting("nvidia_runtime_version", "1.17.8-1", ("w1",))], {}, "toolkits before 1.19.1"),
        ([Setting("nvidia_driver_branch", "470", ("w1",))], {}, "driver 470 is too old for CUDA 12"),
    ],
)
def test_refused(settings: list[Setting], groups: dict[str, list[str]], said: str) -> None:
    (found,) = refusals(*settings, **groups)
    assert said in found
