"""The lab's GPUs as programs of a node and its pods see them: a compiled library, and the program that changes it."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.unit.gpu_hosts import LIBRARIES, Host

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (shutil.which("gcc") and shutil.which("go")), reason="not installed: gcc, go"),
]
NOT_SUPPORTED, GPU_IS_LOST, TIMEOUT, MISMATCH = 3, 15, 10, 18


@pytest.fixture
def host(tmp_path: Path, made_gpus: Path) -> Host:
    host = Host(tmp_path / "host", made_gpus)
    host.install("2", "--profile=A100")
    return host


def test_every_function_of_the_header_is_there(made_gpus: Path, nvml_header: Path) -> None:
    """Found another way than the recipe finds them: by the compiler, in the header with all its versions."""
    argv = ["gcc", "-E", "-P", "-DNVML_NO_UNVERSIONED_FUNC_DEFS", str(nvml_header / "nvml.h")]
    header = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout
    declared = set(re.findall(r"\b(nvml[A-Z]\w*)\s*\([^;{}]*\)\s*;", header))
    argv = ["nm", "--dynamic", "--defined-only", str(made_gpus / "libnvidia-ml.so")]
    listed = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout
    exported = {line.split()[-1] for line in listed.splitlines()}
    assert len(declared) > 400
    assert declared - exported == set()
    assert not [name for name in exported if not name.startswith("nvml")], "the library would shadow names of its users"


def test_a_function_that_is_not_written_says_so(host: Host) -> None:
    assert host.library().nvmlDeviceGetNvLinkState(None, 0, None) == NOT_SUPPORTED


def test_the_table_is_that_of_nvidia_smi(host: Host) -> None:
    result = host.smi()
    lines = result.stdout.splitlines()
    assert result.returncode == 0
    assert {len(line) for line in lines[1:] if line} == {91}, result.stdout
    assert "Driver Version: 580.95.05" in lines[2] and "CUDA Version: 13.0" in lines[2]
    assert [line.split()[1] for line in lines if "A100-SXM4-80GB" in line] == ["0", "1"]


def test_the_library_has_the_suffix_of_its_driver(host: Host) -> None:
    assert os.readlink(host.root / LIBRARIES / "libnvidia-ml.so.1") == "libnvidia-ml.so.580.95.05"
    assert (
        (host.root / "etc/tmpfiles.d/lab-gpus.conf").read_text().startswith("c /dev/nvidia0 0666 root root - 195:0\n")
    )


def test_gpus_are_the_same_in_a_pod_and_others_on_another_host(host: Host, tmp_path: Path, made_gpus: Path) -> None:
    """A pod has the library as a file, one device node, and nothing else of its host."""
    pod = tmp_path / "pod"
    (pod / LIBRARIES).mkdir(parents=True)
    (pod / "usr/bin").mkdir()
    (pod / "dev").mkdir()
    (pod / "dev/nvidia1").touch()
    shutil.copy(host.root / LIBRARIES / "libnvidia-ml.so.580.95.05", pod / LIBRARIES / "libnvidia-ml.so.1")
    shutil.copy(host.root / "usr/bin/nvidia-smi", pod / "usr/bin")
    inside = Host.smi.__get__(type("Pod", (), {"root": pod}))("-L").stdout
    on_host = host.smi("-L").stdout.splitlines()
    assert inside.strip() == on_host[1].replace("GPU 1", "GPU 0")
    other = Host(tmp_path / "other", made_gpus)
    assert (
        other.control("install", "2", "--profile=A100", "--driver=580.95.05", "--cuda=13.0", "--seed=two").returncode
        == 0
    )
    assert not set(re.findall(r"GPU-[0-9a-f-]+", other.smi("-L").stdout)) & set(
        re.findall(r"GPU-[0-9a-f-]+", "".join(on_host))
    )


@pytest.mark.parametrize(
    ("profile", "name", "capability"),
    [("T4", "Tesla T4", "7.5"), ("A100", "NVIDIA A100-SXM4-80GB", "8.0"), ("H100", "NVIDIA H100 80GB HBM3", "9.0")],
)
def test_models_are_data(host: Host, profile: str, name: str, capability: str) -> None:
    host.install("1", f"--profile={profile}")
    assert host.smi("-L").stdout.startswith(f"GPU 0: {name} (UUID: GPU-")
    assert host.smi("--query-gpu=uuid,compute_cap", "--format=csv,noheader").stdout.endswith(f", {capability}\n")


class Event(ctypes.Structure):
    _fields_ = [
        ("device", ctypes.c_void_p),
        ("kind", ctypes.c_ulonglong),
        ("xid", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


def test_a_fault_reaches_who_waits_for_it(host: Host) -> None:
    library = host.library()
    device, events, event = ctypes.c_void_p(), ctypes.c_void_p(), Event()
    host.control("xid", "1", "48")
    assert library.nvmlInit_v2() == 0
    assert library.nvmlDeviceGetHandleByIndex_v2(1, ctypes.byref(device)) == 0
    assert library.nvmlEventSetCreate(ctypes.byref(events)) == 0
    assert library.nvmlDeviceRegisterEvents(device, ctypes.c_ulonglong(8), events) == 0
    assert library.nvmlEventSetWait_v2(events, ctypes.byref(event), 0) == TIMEOUT, "a fault of before is no event"
    host.control("xid", "0", "79")
    host.control("xid", "1", "79")
    begun = time.monotonic()
    assert library.nvmlEventSetWait_v2(events, ctypes.byref(event), 5000) == 0
    assert time.monotonic() - begun < 4
    assert (event.device, event.kind, event.xid) == (device.value, 8, 79), "GPU 0 was not asked for"
    assert library.nvmlDeviceGetMemoryInfo(device, ctypes.create_string_buffer(64)) == GPU_IS_LOST
    name = ctypes.create_string_buffer(96)
    assert library.nvmlDeviceGetUUID(device, name, 96) == 0
    host.control("recover", "1")
    assert library.nvmlDeviceGetMemoryInfo(device, ctypes.create_string_buffer(64)) == 0
    library.nvmlShutdown()


def test_an_application_fault_leaves_the_gpu_healthy(host: Host) -> None:
    host.control("xid", "0", "31")
    assert "<gpu_recovery_action>None<" in host.smi("-q", "-x").stdout
    host.control("xid", "0", "48")
    assert "<gpu_recovery_action>Reset<" in host.smi("-q", "-x").stdout
    assert "<dram_uncorrectable>1<" in host.smi("-q", "-x").stdout


def test_an_unplugged_gpu_is_gone_until_it_is_plugged_in(host: Host) -> None:
    gone = host.smi("-L").stdout.splitlines()[0]
    host.control("unplug", "0")
    assert gone.split("UUID")[1] not in host.smi("-L").stdout
    assert host.smi("-q", "-x").stdout.count("<gpu id=") == 1
    host.control("plug", "0")
    assert host.smi("-L").stdout.splitlines()[0] == gone


def test_another_driver_does_not_fit_the_loaded_module_until_a_restart(host: Host) -> None:
    host.control("driver", "580.126.09")
    refused = host.smi("-L")
    assert (refused.returncode, refused.stderr) == (
        MISMATCH,
        "Failed to initialize NVML: Driver/library version mismatch\n",
    )
    assert sorted(path.name for path in (host.root / LIBRARIES).iterdir()) == [
        "libnvidia-ml.so.1",
        "libnvidia-ml.so.580.126.09",
    ]
    host.control("restart")
    assert "Driver Version: 580.126.09" in host.smi().stdout


def test_what_cannot_be_is_refused(host: Host, tmp_path: Path) -> None:
    for arguments, words in (
        (("xid", "2", "79"), "no GPU 2, it has 2"),
        (("install", "2", "--profile=K80", "--driver=580.95.05", "--cuda=13.0"), "no profile K80, there are: T4"),
        (("install", "17", "--profile=T4", "--driver=580.95.05", "--cuda=13.0"), "up to 16 GPUs, not 17"),
    ):
        result = host.control(*arguments)
        assert result.returncode == 1 and words in result.stderr
    assert "has no GPUs" in host.control("unplug", "0", root=tmp_path / "empty").stderr


def test_a_host_from_which_the_gpus_are_taken_has_none(host: Host) -> None:
    host.install("0", "--profile=A100")
    assert host.smi("-L").returncode == 6
    assert not list((host.root / "dev").glob("nvidia*"))
