"""Tests of the proof of the image with CUDA: complete and incomplete images."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gpu_image
import pytest
from timed import BenchError

LOCKED = {"version": "2.21.0", "arguments": {"CUDA": "12.5"}}
LOOK: dict[str, Any] = {
    "tensorflow": "2.21.0",
    "python": "3.13.5",
    "build": {"is_cuda_build": True, "cuda_version": "12.5.1", "cudnn_version": "9"},
    "packages": {
        "nvidia-cuda-runtime-cu12": "12.5.82",
        "nvidia-cudnn-cu12": "9.3.0.75",
        "nvidia-nccl-cu12": "2.27.7",
    },
    "libraries": {"libcudart.so.12": "/opt/venv/lib/libcudart.so.12"},
    "not_searched": [],
    "no_programs": [],
}


def test_an_image_with_cuda_is_whole() -> None:
    assert gpu_image.faults(LOOK, "12.5", LOCKED) == []


@pytest.mark.parametrize(
    ("changes", "label", "why"),
    [
        ({"libraries": {"libcudnn.so.9": "missing"}}, "12.5", "libcudnn.so.9: missing"),
        ({"no_programs": ["ptxas"]}, "12.5", "ptxas is missing"),
        ({"not_searched": ["libnccl.so.2"]}, "12.5", "TensorFlow does not look where libnccl.so.2 is"),
        ({"build": {**LOOK["build"], "is_cuda_build": False}}, "12.5", "built without CUDA"),
        ({"tensorflow": "2.20.0"}, "12.5", "its TensorFlow is 2.20.0, the lock's 2.21.0"),
        ({}, "12.8", "its label says CUDA 12.8, its wheels are 12.5"),
        ({}, "", "its label says CUDA , its wheels are 12.5"),
        ({"build": {**LOOK["build"], "cuda_version": "11.8"}}, "12.5", "built with CUDA 11.8"),
        (
            {"packages": {**LOOK["packages"], "nvidia-cudnn-cu12": "8.9.7.29"}},
            "12.5",
            "do not run on cudnn 8.9.7.29",
        ),
        ({"python": "3.9.2"}, "12.5", "no wheel for python 3.9.2"),
    ],
)
def test_an_image_with_cuda_that_lacks_something(changes: dict[str, Any], label: str, why: str) -> None:
    assert why in "; ".join(gpu_image.faults({**LOOK, **changes}, label, LOCKED))


def test_the_image_with_cuda_is_not_begun_without_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "not" / "there"
    monkeypatch.setattr(gpu_image, "FREE_BYTES", 1)
    gpu_image.require_room(gone)
    monkeypatch.setattr(gpu_image, "FREE_BYTES", 1 << 60)
    with pytest.raises(BenchError, match="GiB free, and the image needs"):
        gpu_image.require_room(gone)


def test_labels_are_read_from_the_layout(tmp_path: Path) -> None:
    blobs = {"sha256/m": {"config": {"digest": "sha256:c"}}, "sha256/c": {"config": {"Labels": {"a": "b"}}}}
    for name, document in blobs.items():
        path = tmp_path / "blobs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document))
    (tmp_path / "index.json").write_text(json.dumps({"manifests": [{"digest": "sha256:m"}]}))
    assert gpu_image.labels(tmp_path) == {"a": "b"}
