"""One refusal a row: GPU hosts that cannot be, and trainings that ask for GPUs that no node has."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.site.gpu_rules import GPU_RULES
from trainyard.site.site_model import Setting, Site

CATALOGUE = {
    "mnist_ps": {
        "description": "MNIST",
        "kind": "training",
        "topology": "parameter_server",
        "image": {"repository": "tensorflow", "artefact": "image_tensorflow"},
        "command": ["python"],
        "limits": {"cpu": "1", "memory": "1Gi"},
        "worker": {"replicas": 2},
    },
    "cnn": {
        "description": "MNIST",
        "kind": "training",
        "topology": "single",
        "image": {
            "repository": "tensorflow",
            "artefact": "image_tensorflow",
            "gpu": {"repository": "tensorflow-gpu", "artefact": "image_tensorflow_gpu"},
        },
        "command": ["python"],
        "flags": {"train_steps": 1, "require_gpu": True},
        "limits": {"cpu": "1", "memory": "1Gi"},
        "gpus": 1,
    },
}
GROUPS = {"cluster": ["cp1", "w1", "w2"], "gpu_nodes": ["w1", "w2"], "builders": ["b1"]}


def training(**knobs: Any) -> Setting:
    return Setting("workloads_trainings", [{"workload": "mnist_ps", **knobs}])


def cnn(**knobs: Any) -> Setting:
    return Setting("workloads_trainings", [{"workload": "cnn", **knobs}])


def refusals(*settings: Setting, **groups: list[str]) -> list[str]:
    cuda = {"image_tensorflow_gpu": "12.9"}
    site = Site(groups={**GROUPS, **groups}, settings=list(settings), catalogue=CATALOGUE, cuda=cuda)
    return [str(problem) for rule in GPU_RULES for problem in rule(site)]


def gpus(host: str, count: int) -> Setting:
    return Setting("device_plugin_gpus", count, (host,))


SHARED_W2 = Setting("device_plugin_sharing", "time_slicing", ("w2",))
NO_CUDA = {"repository": "tensorflow", "artefact": "image_tensorflow", "gpu": None}


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
        # Two of those of w1; w2 has shares, of which a pod gets one.
        ([training(worker={"gpus": 2}), gpus("w1", 2), SHARED_W2], {}),
        ([training(worker={"gpus": 1}), SHARED_W2, Setting("device_plugin_sharing", "none", ("w1",))], {}),
        ([cnn()], {}),
        ([cnn(image=NO_CUDA, require_gpu=False)], {}),
        ([cnn(image=NO_CUDA), Setting("workloads_require_gpu", False)], {}),
        ([cnn(image=NO_CUDA), Setting("workloads_require_gpu", False)], {}),
        ([cnn(image=NO_CUDA, gpus=0)], {}),
        # What is in an image of somebody else shows when it runs.
        ([cnn(image="registry.example.org/mine:1")], {}),
        # A program that does not know the flag, such as nvidia-smi.
        ([training(worker={"gpus": 1})], {}),
        ([cnn(), Setting("nvidia_driver_branch", "525")], {}),
        ([cnn(image="r/mine:1", cuda="13.0"), Setting("nvidia_driver_branch", "580", ("w1",))], {}),
        # It has no GPU.
        ([cnn(image="r/mine:1", cuda="13.0"), Setting("nvidia_driver_branch", "570", ("cp1",))], {}),
        ([cnn(image="r/mine:1", cuda="99.0"), Setting("nvidia_driver_branch", "580", ("w1",))], {}),
        ([Setting("nvidia_runtime_version", "1.20.0", ("w1",)), Setting("nvidia_runtime_version", "v1.20.1")], {}),
        ([Setting("nvidia_driver_branch", "580", ("w1",)), Setting("nvidia_driver_branch", "550")], {}),
        ([Setting("nvidia_driver_branch", "470")], {"gpu_nodes": []}),
        (
            [
                Setting("nvidia_driver_branch", "590", ("w1",)),
                Setting("nvidia_driver_branch", "580", ("w2",)),
                Setting("nvidia_driver_version", "580.105.08", ("w2",)),
            ],
            {},
        ),
        ([Setting("supply", "mirror"), Setting("nvidia_driver_source", "preinstalled", ("w1",))], {}),
        (
            [
                Setting("supply", "mirror"),
                Setting("nvidia_driver_source", "nvidia", ("w1",)),
                Setting("base_apt_sources", [{"name": "driver"}], ("w1",)),
            ],
            {},
        ),
    ],
)
def test_sites_that_can_be(settings: list[Setting], groups: dict[str, list[str]]) -> None:
    assert refusals(*settings, **groups) == []


@pytest.mark.parametrize(
    ("settings", "groups", "said"),
    [
        ([], {"gpu_nodes": ["w1", "x1"]}, "host x1 is in gpu_nodes, but in no other group"),
        (
            [training(worker={"gpus": 1})],
            {"gpu_nodes": ["b1"]},
            "workloads_trainings[0].gpus is 1: no node of this site has a GPU",
        ),
        ([training(limits={"nvidia.com/gpu": 1})], {"gpu_nodes": []}, "Put the hosts with GPUs into gpu_nodes"),
        (
            [training(worker={"gpus": 4}), gpus("w1", 1), gpus("w2", 2)],
            {},
            ".gpus is 4: no node has as many; the largest, w2, has 2. Request 2 or fewer.",
        ),
        (
            [training(worker={"gpus": 2}), Setting("device_plugin_sharing", "time_slicing", ("w1", "w2"))],
            {},
            ".gpus is 2: no node has as many; the largest, w1, has 1 share of a GPU for a pod (device_plugin_sharing)",
        ),
        (
            [training(worker={"gpus": 4}), gpus("w1", 2), SHARED_W2],
            {},
            ".gpus is 4: no node has as many; the largest, w1, has 2. Request 2 or fewer.",
        ),
        (
            [cnn(image=NO_CUDA)],
            {},
            '.chief.image is "localhost/trainyard/tensorflow": it has no CUDA, but chief has to compute on its GPUs',
        ),
        ([cnn(image=NO_CUDA, require_gpu="auto")], {}, "it has no CUDA"),
        (
            [cnn(image="r/mine:1", cuda="13.0"), Setting("nvidia_driver_branch", "570", ("cp1", "w1"))],
            {},
            '.cuda is "13.0": driver 570 is too old for CUDA 13, which needs 580.65.06 or newer (nvidia_driver_branch '
            "of w1). Set nvidia_driver_branch to 580 or newer",
        ),
        ([Setting("device_plugin_replicas", 1, ("w1",))], {}, "device_plugin_replicas (w1) is 1: at least 2 pods"),
        ([Setting("nvidia_runtime_version", "1.17.8-1", ("w1",))], {}, "toolkits before 1.20.0"),
        ([Setting("nvidia_runtime_version", "1.19.1", ("w1",))], {}, "toolkits before 1.20.0"),
        (
            [Setting("nvidia_driver_branch", "570"), Setting("nvidia_driver_version", "580.105.08", ("w1",))],
            {},
            'nvidia_driver_version (w1) is "580.105.08": not a version of the branch 570 (nvidia_driver_branch)',
        ),
        (
            [Setting("supply", "mirror"), Setting("nvidia_driver_source", "nvidia", ("w1",))],
            {},
            "a mirror (supply) serves no driver",
        ),
        ([Setting("nvidia_driver_branch", "470", ("w1",))], {}, "driver 470 is too old for CUDA 12"),
    ],
)
def test_refused(settings: list[Setting], groups: dict[str, list[str]], said: str) -> None:
    (found,) = refusals(*settings, **groups)
    assert said in found
