"""The stages of gpu-proof that compute: with programs in place of a Python with TensorFlow, and on CPUs."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT, read_yaml

from trainyard.gpu.gpu_model import Gpu, Inventory
from trainyard.gpu.proof import compute
from trainyard.gpu.proof.report import Kit, Result

GPUS = tuple(Gpu(number, f"GPU-{number}", "Tesla T4", minor=number) for number in range(2))
GOOD = {"version": "2.21.0", "cuda": "12.5.1", "gpus": ["Tesla T4", "Tesla T4"], "worst": 0.01, "wrong": []}
SUMMED = {**GOOD, "gb_per_s": 41.27}
END = {"event": "end", "result": "passed", "accuracy": 0.9611, "compute": "gpu", "step": 500, "steps_per_second": 86.2}


def _kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str, status: int = 0, gpus: int = 2) -> Kit:
    """Return a kit whose Python prints this text."""
    monkeypatch.setattr(compute, "readings", lambda kit: Inventory("nvml", gpus=GPUS[:gpus]))
    (tmp_path / "output").write_text(output)
    python = tmp_path / "python"
    # The version is asked before the training starts.
    python.write_text(
        f'#!/bin/sh\n[ "$2" != versions ] || {{ echo "{{}}"; exit; }}\ncat "{tmp_path}/output"\nexit {status}\n'
    )
    python.chmod(0o755)
    return Kit(tmp_path, tmp_path, {compute.PYTHON: str(python)})


def _result(result: Result) -> tuple[str, str]:
    return result.result, result.detail


@pytest.mark.parametrize(
    ("found", "result", "detail"),
    [
        (GOOD, "pass", "TensorFlow 2.21.0 multiplied on Tesla T4, Tesla T4"),
        ({**GOOD, "wrong": ["/GPU:1"]}, "fail", "the product of /GPU:1 differs from the CPU's"),
        ({**GOOD, "cuda": "", "gpus": []}, "fail", "has no CUDA; TensorFlow 2.21.0 finds 0 of 2 GPUs"),
        ({**GOOD, "gpus": ["Tesla T4"]}, "fail", "finds 1 of 2 GPUs"),
        ({**GOOD, "worst": None}, "fail", "TensorFlow computed no product"),
        ({}, "fail", "has no CUDA"),
        ({"missing": "No module named 'tensorflow'"}, "not_run", "Set GPU_PROOF_PYTHON to a Python that has it"),
    ],
)
def test_tensorflow(
    found: dict[str, Any], result: str, detail: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = compute.tensorflow(_kit(tmp_path, monkeypatch, f"noise\n{json.dumps(found)}\n"))
    assert seen.result == result and detail in seen.detail


@pytest.mark.parametrize(
    ("output", "result", "detail"),
    [
        (f"NCCL version 2.27\n{json.dumps(SUMMED)}", "pass", "the sum over 2 GPUs is right"),
        (json.dumps(SUMMED), "fail", "TensorFlow did not use NCCL"),
        (f"NCCL version 2.27\n{json.dumps({**SUMMED, 'wrong': [1]})}", "fail", "the sum of 1 is wrong"),
        (f"NCCL version 2.27\n{json.dumps(GOOD)}", "fail", "TensorFlow reduced nothing"),
        ("", "fail", "has no CUDA"),
    ],
)
def test_nccl(output: str, result: str, detail: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = compute.nccl(_kit(tmp_path, monkeypatch, output))
    assert seen.result == result and detail in seen.detail


def test_nccl_needs_two_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kit = _kit(tmp_path, monkeypatch, "", gpus=1)
    assert _result(compute.nccl(kit)) == ("not_run", "The host has one GPU, and an all-reduce needs two.")


@pytest.mark.parametrize(
    ("events", "status", "result", "detail"),
    [
        ([END], 0, "pass", "mnist_gpu passed its bound 0.9 in 500 steps, compute gpu"),
        ([{**END, "compute": "cpu"}], 0, "fail", "the training computed on cpu"),
        ([{**END, "result": "failed", "accuracy": 0.5}], 3, "fail", "its accuracy is 0.5, and the bound is 0.9"),
        ([{**END, "result": "no_bound"}], 0, "fail", "the bound is 0.9"),
        (
            [END, {"event": "error", "message": "No GPU.", "remedy": "Set one."}],
            2,
            "fail",
            "status 2: No GPU. Set one.",
        ),
        ([], 1, "fail", "the training ended with status 1"),
        ([{"event": "end", "compute": {"a": 1}, "accuracy": 1e400}], 0, "fail", "an unknown device"),
    ],
)
def test_training(
    events: list[dict[str, Any]], status: int, result: str, detail: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "".join(f"{json.dumps(each)}\n" for each in events)
    seen = compute.training(_kit(tmp_path, monkeypatch, f"2026 I tensorflow\n[1]\n{text}", status))
    assert seen.result == result and detail in seen.detail


@pytest.mark.parametrize("stage", [compute.tensorflow, compute.nccl, compute.training])
def test_a_python_that_does_not_exist(stage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kit = replace(_kit(tmp_path, monkeypatch, ""), environment={compute.PYTHON: "/no/python"})
    assert stage(kit).result == "not_run"


@pytest.mark.parametrize(
    ("name", "reason"), [("none.txt", "which has no wheel"), ("x-1-cp27-none-any.whl", "cannot be")]
)
def test_wheels_that_cannot_be_installed(
    name: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "wheels"
    folder.mkdir()
    (folder / name).touch()
    kit = replace(_kit(tmp_path, monkeypatch, ""), environment={compute.WHEELS: str(folder)})
    seen = compute.tensorflow(kit)
    assert seen.result == "not_run" and reason in seen.detail


def test_the_bound_is_the_catalogues() -> None:
    flags = read_yaml(ROOT / "workloads/catalogue/mnist_gpu.yml")["flags"]
    assert flags["accuracy_bound"] == compute.ACCURACY_BOUND and flags["require_gpu"] is True


ON_CPUS = """
import sys
sys.path.insert(0, sys.argv[1])
import tensorflow as tf
import with_tensorflow as program
cpu, *_ = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 3)
program.BYTES, program.TIMES = 1 << 20, 2
print(program.product(tf, ["/CPU:1"]))
same, tf.identity = tf.identity, lambda value: value + 0.001
print(program.product(tf, ["/CPU:2"])["wrong"])
tf.identity = same
operations = tf.distribute.ReductionToOneDevice()
print(program.all_reduce(tf, ["/CPU:0", "/CPU:1", "/CPU:2"], operations)["wrong"])
"""


@pytest.mark.slow
def test_product_and_sum_with_tensorflow() -> None:
    """The second product has changed factors, which the comparison must find."""
    argv = [sys.executable, "-c", ON_CPUS, str(ROOT / "src/trainyard/gpu/proof")]
    lines = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=300).stdout.splitlines()
    assert lines == ["{'worst': 0.0, 'wrong': []}", "['/CPU:2']", "[]"]
