"""gpu_info as a process on a host with the lab's GPUs: the library and the program say the same."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.unit.gpu_hosts import LIBRARIES, Host
from trainyard.gpu import look as driver
from trainyard.gpu import nvml, smi
from trainyard.gpu.gpu_model import Inventory
from trainyard.gpu.look import look

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (shutil.which("gcc") and shutil.which("go")), reason="not installed: gcc, go"),
]
ROOT = Path(__file__).parents[3]


@pytest.fixture(params=["T4", "A100", "H100"])
def host(tmp_path: Path, made_gpus: Path, request: pytest.FixtureRequest) -> Host:
    host = Host(tmp_path / "host", made_gpus)
    host.install("2", f"--profile={request.param}")
    return host


def by_library(host: Host) -> Inventory:
    spec = importlib.util.find_spec("pynvml")
    assert spec and spec.origin
    binding = nvml.load(Path(spec.origin))
    # As it would load it from the host's own folder.
    binding.nvmlLib = ctypes.CDLL(os.path.realpath(host.root / LIBRARIES / "libnvidia-ml.so.1"))
    return nvml.read(binding)


def by_program(host: Host) -> Inventory:
    capabilities = host.smi("--query-gpu=uuid,compute_cap", "--format=csv,noheader").stdout
    return smi.read(host.smi("-q", "-x").stdout, capabilities)


def facts(inventory: Inventory) -> dict[str, Any]:
    """Without what has to be different: who was asked."""
    return {key: value for key, value in inventory.facts().items() if key != "source"}


@pytest.mark.parametrize("fault", [(), ("xid", "1", "79"), ("xid", "1", "48"), ("unplug", "0")])
def test_library_and_program_say_the_same(host: Host, fault: tuple[str, ...]) -> None:
    if fault:
        host.control(*fault)
    assert facts(by_library(host)) == facts(by_program(host))


def test_the_library_tells_everything(host: Host) -> None:
    found = by_library(host).facts()
    assert (found["source"], found["driver"], found["cuda"], len(found["gpus"])) == ("nvml", "580.95.05", "13.0", 2)
    unknown = {key for key, value in found["gpus"][0].items() if value is None}
    # What the lab's GPUs do not have: a T4 cannot be divided, and none of them counts rows.
    assert unknown - {"mig", "rows_pending", "rows_failed"} == set()
    assert found["healthy"]


def test_a_fault_is_a_problem_until_it_is_made_good(host: Host) -> None:
    host.control("xid", "1", "79")
    sick = by_library(host).gpus
    assert (sick[0].problems, sick[1].lost) == ([], True)
    assert sick[1].uuid and sick[1].memory_total_mib is None
    host.control("recover", "1")
    assert by_library(host).facts()["healthy"]


def test_a_library_that_does_not_fit_is_skew(host: Host) -> None:
    host.control("driver", "580.126.09")
    found = by_library(host)
    assert (found.source, found.mismatch, found.skew) == ("none", True, True)
    assert "mismatch" in (found.error or "").lower()


def ansible(host: Host, *arguments: str, **environment: str) -> dict[str, Any]:
    """The module by way of its action plugin, as a role calls it, with the host's library and program."""
    found = {
        **os.environ,
        "LD_LIBRARY_PATH": str(host.root / LIBRARIES),
        "PATH": f"{host.root}/usr/bin:{os.environ['PATH']}",
        "ANSIBLE_STDOUT_CALLBACK": "json",
        "ANSIBLE_LOAD_CALLBACK_PLUGINS": "1",
        **environment,
    }
    argv = ["ansible", "localhost", "-i", "localhost,", "-c", "local", "-m", "gpu_info", *arguments]
    result = subprocess.run(argv, cwd=ROOT, env=found, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    # The checkout's own callback adds times.
    document, _ = json.JSONDecoder().raw_decode(result.stdout, result.stdout.index("{"))
    return document["plays"][0]["tasks"][0]["hosts"]["localhost"]


@pytest.mark.parametrize("host", ["A100"], indirect=True)
def test_the_module_reads_and_writes(host: Host, tmp_path: Path) -> None:
    textfile = tmp_path / "gpus.prom"
    first = ansible(host, "-a", f"textfile={textfile}")
    gpus = first["ansible_facts"]["gpus"]
    assert (gpus["source"], gpus["skew"], [gpu["name"] for gpu in gpus["gpus"]]) == (
        "nvml",
        False,
        ["NVIDIA A100-SXM4-80GB"] * 2,
    )
    assert first["changed"] and textfile.read_text().count("DCGM_FI_DEV_GPU_TEMP{") == 2
    assert not ansible(host, "-a", f"textfile={textfile}")["changed"]
    (host.root / LIBRARIES / "libnvidia-ml.so.1").unlink()
    without = ansible(host)["ansible_facts"]["gpus"]
    assert without["source"] == "none" and "NVML" in without["error"], "the program needs the library, too"


@pytest.mark.parametrize("host", ["H100"], indirect=True)
def test_without_the_binding_the_program_is_asked(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{host.root}/usr/bin:{os.environ['PATH']}")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(host.root / LIBRARIES))
    monkeypatch.setattr(driver, "ROOT", host.root)
    found = look(None).facts()
    assert (found["source"], found["library_version"], found["skew"]) == ("nvidia-smi", "580.95.05", False)
    assert [gpu["compute_capability"] for gpu in found["gpus"]] == ["9.0", "9.0"]
    host.control("driver", "580.126.09")
    found = look(None).facts()
    assert (found["source"], found["library_version"], found["skew"]) == ("none", "580.126.09", True)
