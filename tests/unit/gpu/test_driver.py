"""The driver as the host itself knows it, skew, logged faults, and the text for Prometheus."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from trainyard.core.errors import CommandError
from trainyard.gpu import gpu_metrics, look, nvml
from trainyard.gpu.gpu_model import Gpu, Inventory, same_bus

OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (builder)\nGCC version:\n"
PROPRIETARY = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\nGCC version:\n"
GPU = Gpu(0, "GPU-1", "Tesla T4", minor=3, pci_bus_id="00000000:3B:00.0", temperature_celsius=40, memory_used_mib=0)


@pytest.mark.parametrize(
    ("files", "version"),
    [
        ({"sys/module/nvidia/version": "580.95.05\n", "proc/driver/nvidia/version": PROPRIETARY}, "580.95.05"),
        ({"proc/driver/nvidia/version": OPEN}, "580.95.05"),
        ({"proc/driver/nvidia/version": PROPRIETARY}, "535.183.01"),
        ({}, None),
    ],
)
def test_the_loaded_module(
    files: dict[str, str], version: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look, "ROOT", tmp_path)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    assert look.module_version() == version


def test_the_library_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look, "ROOT", tmp_path)
    assert look.library_version() is None
    folder = tmp_path / "usr/lib64"
    folder.mkdir(parents=True)
    (folder / "libnvidia-ml.so.580.95.05").touch()
    (folder / "libnvidia-ml.so.1").symlink_to("libnvidia-ml.so.580.95.05")
    assert look.library_version() == "580.95.05"


def test_the_package_of_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"
    answers = {
        "--search": f"libnvidia-compute-580:amd64: {library}\n",
        "--show": "580.95.05",
    }
    asked: list[str] = []

    def dpkg(argv: list[str], **_: object) -> SimpleNamespace:
        asked.append(argv[-1])
        return SimpleNamespace(stdout=answers[argv[1]])

    monkeypatch.setattr(look, "ROOT", tmp_path)
    monkeypatch.setattr(look, "run", dpkg)
    assert (look.package_version(), asked) == (None, []), "no library"
    library.parent.mkdir(parents=True)
    library.touch()
    assert (look.package_version(), asked) == ("580.95.05", [str(library), "libnvidia-compute-580:amd64"])

    def nobody(argv: list[str], **_: object) -> SimpleNamespace:
        raise CommandError("no path found matching pattern")

    monkeypatch.setattr(look, "run", nobody)
    assert look.package_version() is None, "somebody has copied it there"


@pytest.mark.parametrize(
    ("following", "package", "pending"),
    [
        ("580.95.05", "580.95.05", ""),
        (None, None, ""),
        ("570.1", "580.95.05", "the module 570.1 for its next boot, and the library 580.95.05"),
        ("580.95.05", "570.1", "the library 580.95.05, and the package 570.1 for it"),
    ],
)
def test_what_ends_the_work_of_gpus_later(following: str | None, package: str | None, pending: str) -> None:
    found = Inventory("nvml", "580.95.05", gpus=(GPU,), next_module_version=following, package_version=package)
    facts = found.with_versions(None, None).facts()
    assert (facts["pending"], facts["skew"], facts["healthy"]) == (pending, False, True)


@pytest.mark.parametrize(
    ("module", "library", "mismatch", "skew"),
    [
        ("580.95.05", "580.95.05", False, False),
        ("580.95.05", "580.126.09", False, True),
        (None, "580.126.09", True, True),
        (None, None, False, False),
    ],
)
def test_skew(module: str | None, library: str | None, mismatch: bool, skew: bool) -> None:
    facts = Inventory("none", mismatch=mismatch).with_versions(module, library).facts()
    assert (facts["skew"], facts["healthy"]) == (skew, False), "no GPU is no healthy one"


@pytest.mark.parametrize(("lost", "skewed"), [(False, False), (True, False), (False, True)])
def test_healthy_are_gpus_that_work(lost: bool, skewed: bool) -> None:
    facts = Inventory("nvml", gpus=(GPU, replace(GPU, lost=lost)), mismatch=skewed).facts()
    assert facts["healthy"] == (not (lost or skewed))


def test_an_answer_means_that_library_and_module_agree() -> None:
    found = Inventory("nvml", "580.95.05").with_versions(None, None)
    assert (found.module_version, found.library_version, found.skew) == ("580.95.05", "580.95.05", False)


def test_logged_faults_belong_to_their_gpu() -> None:
    def line(message: str, **fields: str) -> str:
        return json.dumps({"MESSAGE": message, **fields})

    journal = "\n".join(
        [
            line("NVRM: Xid (PCI:0000:3b:00): 31, pid=7, name=python", _TRANSPORT="kernel"),
            line("NVRM: Xid (PCI:0000:af:00): 79, pid='<unknown>'", _TRANSPORT="kernel"),
            line("NVRM: Xid (PCI:0000:3b:00.0): 48, pid=9", _TRANSPORT="journal", _UID="0"),
            line("NVRM: Xid (PCI:0000:3b:00): 95, made up", _TRANSPORT="journal", _UID="1000"),
            line("NVRM: loading"),
            '{"MESSAGE": [1, 2], "_TRANSPORT": "kernel"}',
            "-- no JSON",
        ]
    )
    found = Inventory("nvml", gpus=(GPU,)).with_xids(look.xids(journal))
    assert found.gpus[0].xids == (31, 48)
    assert found.facts()["healthy"], "a reset may have made it good; the log does not forget"


def test_addresses_of_kernel_and_library() -> None:
    assert same_bus("0000:3b:00", "00000000:3B:00.0")
    assert not same_bus("0000:3b:00", "00000000:3C:00.0")
    assert not same_bus("0000:3b:00", "")


def test_the_text_for_prometheus() -> None:
    found = Inventory("nvml", "580.95.05", gpus=(GPU,)).with_xids([("0000:3b:00", 31), ("0000:3b:00", 79)])
    text = gpu_metrics.render(found, 'a"b')
    labels = 'gpu="0",UUID="GPU-1",pci_bus_id="00000000:3B:00.0",device="nvidia3",modelName="Tesla T4"'
    labels += ',Hostname="a\\"b",DCGM_FI_DRIVER_VERSION="580.95.05"'
    assert text.splitlines() == [
        "# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C).",
        "# TYPE DCGM_FI_DEV_GPU_TEMP gauge",
        f"DCGM_FI_DEV_GPU_TEMP{{{labels}}} 40",
        "# HELP DCGM_FI_DEV_FB_USED Framebuffer memory used (in MiB).",
        "# TYPE DCGM_FI_DEV_FB_USED gauge",
        f"DCGM_FI_DEV_FB_USED{{{labels}}} 0",
        "# HELP DCGM_FI_DEV_XID_ERRORS Value of the last XID error encountered.",
        "# TYPE DCGM_FI_DEV_XID_ERRORS gauge",
        f"DCGM_FI_DEV_XID_ERRORS{{{labels}}} 79",
    ]
    assert gpu_metrics.series(text) == [line.rpartition(" ")[0] for line in text.splitlines()[2::3]]


def test_a_library_that_starts_and_then_fails_is_no_answer() -> None:
    class Failed(Exception):
        value = 999

    def fail() -> int:
        raise Failed("Unknown Error")

    library = SimpleNamespace(NVMLError=Failed, nvmlInit=lambda: None, nvmlShutdown=lambda: None)
    library.nvmlSystemGetCudaDriverVersion_v2 = fail
    found = nvml.read(library)
    assert (found.source, found.error, found.mismatch) == ("none", "Unknown Error", False)
