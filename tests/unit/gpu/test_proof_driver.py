"""The stages of gpu-proof that need the driver alone, on recorded values and trees of files."""

from __future__ import annotations

import copy
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.gpu import look
from trainyard.gpu.gpu_model import Gpu, Inventory
from trainyard.gpu.proof import driver
from trainyard.gpu.proof.report import Kit

GPU = Gpu(
    0,
    "GPU-1",
    "Tesla T4",
    minor=0,
    memory_total_mib=15360,
    power_limit_watts=70.0,
    temperature_celsius=40,
    mig="disabled",
)
FOUND = Inventory("nvml", "580.95.05", "13.0", (GPU, replace(GPU, index=1, uuid="GPU-2", minor=1)), on_bus=2)


def test_equal_readings_have_no_difference() -> None:
    other = replace(
        FOUND, source="nvidia-smi", gpus=tuple(replace(each, temperature_celsius=55) for each in FOUND.gpus)
    )
    assert list(driver.differences(FOUND, other)) == []


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"name": "Tesla T40"}, "GPU 0 name: Tesla T4, nvidia-smi: Tesla T40"),
        ({"memory_total_mib": None}, "GPU 0 memory_total_mib: 15360, nvidia-smi: None"),
        ({"temperature_celsius": None}, "GPU 0 temperature_celsius: 40, nvidia-smi: None"),
        ({"power_limit_watts": 70.02}, "GPU 0 power_limit_watts: 70.0, nvidia-smi: 70.02"),
        ({"lost": True}, "GPU 0 lost: False, nvidia-smi: True"),
    ],
)
def test_each_difference_is_named(change: dict[str, Any], difference: str) -> None:
    other = replace(FOUND, gpus=(replace(GPU, **change), FOUND.gpus[1]))
    assert list(driver.differences(FOUND, other)) == [difference]


def test_other_numbers_and_versions_are_named() -> None:
    other = replace(FOUND, driver="580.95.06", gpus=FOUND.gpus[:1])
    assert list(driver.differences(FOUND, other)) == [
        "driver: 580.95.05, nvidia-smi: 580.95.06",
        "2 GPUs, nvidia-smi: 1",
    ]


DESCRIBED = {
    "kind": "nvidia.com/gpu",
    "devices": [
        {"name": name, "containerEdits": {"deviceNodes": [{"path": f"/dev/nvidia{minor}"} for minor in minors]}}
        for name, minors in (("0", [0]), ("1", [1]), ("all", [0, 1]))
    ],
    "containerEdits": {
        "deviceNodes": [{"path": "/dev/nvidiactl"}],
        "mounts": [{"hostPath": "/usr/lib/libcuda.so.1", "containerPath": "/usr/lib/libcuda.so.1"}],
        "hooks": [{"path": "/opt/nvidia-cdi-hook"}],
    },
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (
        "dev/nvidia0",
        "dev/nvidia1",
        "dev/nvidiactl",
        "dev/nvidia-uvm",
        "usr/lib/libcuda.so.1",
        "opt/nvidia-cdi-hook",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def test_a_whole_description(tree: Path) -> None:
    assert list(driver.description_faults(DESCRIBED, FOUND, tree)) == []


@pytest.mark.parametrize("name", ["dev/nvidiactl", "usr/lib/libcuda.so.1", "opt/nvidia-cdi-hook"])
def test_a_described_path_that_does_not_exist(name: str, tree: Path) -> None:
    (tree / name).unlink()
    assert list(driver.description_faults(DESCRIBED, FOUND, tree)) == [f"/{name} does not exist"]


def test_a_gpu_that_is_not_described(tree: Path) -> None:
    described = copy.deepcopy(DESCRIBED)
    del described["devices"][1:]
    faults = list(driver.description_faults(described, FOUND, tree))
    assert faults == ["no device of GPU 1 has /dev/nvidia1", "there is no device `all`"]


@pytest.mark.parametrize("described", [{}, {"devices": 3, "containerEdits": []}, {"devices": [{"name": {}}, None]}])
def test_a_description_of_another_form(described: dict[str, Any], tree: Path) -> None:
    assert len(list(driver.description_faults(described, FOUND, tree))) >= 3


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    (tmp_path / "kit/wheels").mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "kit/wheels/nvidia_ml_py-13.580.126-py3-none-any.whl", "w") as wheel:
        wheel.writestr("pynvml.py", "")
    (tmp_path / "work").mkdir()
    return Kit(tmp_path / "kit", tmp_path / "work", {})


def _host(
    tree: Path, found: Inventory, module: str | None, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, str]:
    monkeypatch.setattr(driver, "ROOT", tree)
    monkeypatch.setattr(look, "look", lambda binding: found)
    monkeypatch.setattr(look, "module_version", lambda: module)
    result = driver.host(kit)
    return result.result, result.detail


def test_a_host_with_its_driver(tree: Path, kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    found = FOUND.with_versions("580.95.05", "580.95.05")
    assert _host(tree, found, "580.95.05", kit, monkeypatch) == (
        "pass",
        "2 Tesla T4, driver 580.95.05, CUDA up to 13.0",
    )


@pytest.mark.parametrize(
    ("change", "module", "fault"),
    [
        ({"on_bus": None}, "580.95.05", "the PCI bus shows no NVIDIA GPU"),
        ({"on_bus": 3}, "580.95.05", "the driver shows 2 of 3 GPUs on the bus"),
        ({}, None, "the kernel module nvidia is not loaded"),
        (
            {"source": "none", "gpus": (), "error": "Driver Not Loaded"},
            "580.95.05",
            "does not answer: Driver Not Loaded",
        ),
        ({"source": "nvidia-smi"}, "580.95.05", "NVML does not answer, only nvidia-smi"),
        ({"library_version": "580.99"}, "580.95.05", "the module is 580.95.05, but the library is 580.99"),
        ({"next_module_version": "581"}, "580.95.05", "the module 581 for its next boot"),
        ({"gpus": (replace(GPU, lost=True), FOUND.gpus[1])}, "580.95.05", "GPU 0: it is lost"),
    ],
)
def test_each_fault_of_a_driver(
    change: dict[str, Any], module: str | None, fault: str, tree: Path, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = replace(replace(FOUND, module_version="580.95.05", library_version="580.95.05"), **change)
    result, detail = _host(tree, found, module, kit, monkeypatch)
    assert result == "fail" and fault in detail


def test_a_missing_device_node_and_nouveau(tree: Path, kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / "dev/nvidia-uvm").unlink()
    (tree / "sys/module/nouveau").mkdir(parents=True)
    _, detail = _host(tree, FOUND.with_versions("580.95.05", "580.95.05"), "580.95.05", kit, monkeypatch)
    assert "nouveau is loaded" in detail and "/dev/nvidia-uvm does not exist" in detail


def test_a_kit_without_the_binding(tmp_path: Path) -> None:
    with pytest.raises(TrainyardError, match="Unpack the kit again"):
        driver.binding(Kit(tmp_path, tmp_path, {}))
