"""Tests of the reported device, and of the errors if a required GPU is missing."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from engine.cluster import devices
from engine.errors import InputError


def tensorflow(found, *, cuda=True):
    """Return a substitute for the module."""
    config = SimpleNamespace(list_physical_devices=lambda kind: ["device"] * found if kind == "GPU" else ["cpu"])
    build = SimpleNamespace(get_build_info=lambda: {"is_cuda_build": cuda})
    return SimpleNamespace(config=config, sysconfig=build)


@pytest.fixture
def nodes(tmp_path, monkeypatch):
    """Provide the process with the given device nodes."""
    monkeypatch.setattr(devices, "DEVICES", tmp_path)

    def give(*names):
        for name in names:
            (tmp_path / name).touch()

    return give


def test_a_pod_with_two_gpus_has_two(nodes):
    nodes("nvidia0", "nvidia3", "nvidiactl", "nvidia-uvm")
    assert devices.compute(tensorflow(2), require_gpu=devices.ALWAYS) == {"compute": "gpu", "gpu_allocated": 2}


def test_the_account_says_plainly_that_the_cpu_computes(nodes):
    nodes("nvidia0", "nvidiactl")
    assert devices.compute(tensorflow(0), require_gpu=devices.NEVER) == {"compute": "cpu", "gpu_allocated": 1}


def test_a_gpu_is_required_where_one_was_given(nodes):
    assert devices.compute(tensorflow(0), require_gpu=devices.WHERE_GIVEN)["gpu_allocated"] == 0
    nodes("nvidia0")
    with pytest.raises(InputError, match="none of the 1 of this pod"):
        devices.compute(tensorflow(0), require_gpu=devices.WHERE_GIVEN)


@pytest.mark.parametrize(
    ("processes", "said"),
    [
        ([("gpu", 1), ("gpu", 2)], {"compute": "gpu", "gpu_allocated": 3}),
        # A process that does not use its GPU slows down the others.
        ([("gpu", 1), ("cpu", 1)], {"compute": "cpu", "gpu_allocated": 2}),
        ([("cpu", 0)], {"compute": "cpu", "gpu_allocated": 0}),
        ([], {}),
    ],
)
def test_several_processes_compute_on_gpus_where_each_does(processes, said):
    found = [{"compute": compute, "gpu_allocated": count} for compute, count in processes]
    assert devices.together(found) == said


@pytest.mark.parametrize(
    ("given", "cuda", "words"),
    [
        (["nvidia0"], False, "has no CUDA"),
        ([], True, "was given none"),
        (["nvidia0"], True, "none of the 1 of this pod"),
    ],
)
def test_a_required_gpu_that_is_not_used_is_an_error(nodes, given, cuda, words):
    nodes(*given)
    with pytest.raises(InputError, match=words):
        devices.compute(tensorflow(0, cuda=cuda), require_gpu=devices.ALWAYS)
