"""Tests of the versions of an image with and without CUDA."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from engine import runtime
from engine.compat import Combination, check
from engine.errors import InputError

OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n"


def tensorflow(*capabilities, **build):
    """Return a substitute for the module."""
    details = SimpleNamespace(get_device_details=lambda gpu: {"compute_capability": gpu} if gpu else {})
    config = SimpleNamespace(list_physical_devices=lambda kind: list(capabilities), experimental=details)
    return SimpleNamespace(__version__="2.21.0", sysconfig=SimpleNamespace(get_build_info=lambda: build), config=config)


WITH_CUDA = {"is_cuda_build": True, "cuda_version": "12.5.1", "cudnn_version": "9"}


@pytest.fixture
def driver(tmp_path, monkeypatch):
    path = tmp_path / "version"
    monkeypatch.setattr(runtime, "DRIVER", path)
    return path


def test_an_image_without_cuda_asks_nothing_of_the_node(driver):
    driver.write_text(OPEN)
    assert runtime.versions(tensorflow((8, 0), is_cuda_build=False)).keys() == {"tensorflow", "python"}


def test_an_image_with_cuda_has_the_weakest_gpu_and_the_driver(driver):
    driver.write_text(OPEN)
    found = runtime.versions(tensorflow((9, 0), None, (7, 5), **WITH_CUDA))
    del found["python"]
    assert found == {
        "tensorflow": "2.21.0",
        "cuda": "12.5.1",
        "cudnn": "9",
        "driver": "580.95.05",
        "compute_capability": "7.5",
    }
    check(Combination("single", "custom", "none", **found))


def test_libraries_that_the_image_has_count_and_not_those_of_the_build(driver, monkeypatch):
    monkeypatch.setattr(runtime.metadata, "version", {"nvidia-cuda-runtime-cu12": "12.9.79"}.__getitem__)
    monkeypatch.setattr(runtime.metadata, "PackageNotFoundError", KeyError)
    found = runtime.versions(tensorflow((12, 0), **WITH_CUDA))
    assert (found["cuda"], found["cudnn"]) == ("12.9.79", "9")
    check(Combination("single", "custom", "none", **found))
    with pytest.raises(InputError, match=r"CUDA 12\.5\.1 has no code for a GPU of 12\.0"):
        check(Combination("single", "custom", "none", **{**found, "cuda": "12.5.1"}))


def test_a_node_without_a_driver_is_no_obstacle_here(driver):
    assert "driver" not in runtime.versions(tensorflow(**WITH_CUDA))


def test_an_image_that_needs_a_newer_driver_is_refused(driver):
    driver.write_text(OPEN.replace("580.95.05", "470.256.02"))
    with pytest.raises(InputError, match="too old for CUDA 12") as error:
        check(Combination("single", "custom", "none", **runtime.versions(tensorflow(**WITH_CUDA))))
    assert "driver 525.60.13" in error.value.remedy
