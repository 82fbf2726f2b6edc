"""The lab's stand-in for NVIDIA's library, compiled as the bundle compiles it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from trainyard.bundle.build import plain_files
from trainyard.bundle.context import Context
from trainyard.bundle.lockfile import load

PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def nvml_header(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the header that the lock names, out of its Go module."""
    wrapper = tmp_path_factory.mktemp("nvml") / "wrapper"
    shutil.copytree(PROJECT / "roles/bundle/files/go/nvml", wrapper)
    command = ["go", "mod", "download", "-json", "github.com/NVIDIA/go-nvml"]
    listed = subprocess.run(command, cwd=wrapper, capture_output=True, text=True, check=True, timeout=300)
    return Path(json.loads(listed.stdout)["Dir"]) / "pkg/nvml"


@pytest.fixture(scope="session")
def made_gpus(nvml_header: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the bundle makes of its entry `lab_gpus`."""
    out = tmp_path_factory.mktemp("lab_gpus")
    context = Context(PROJECT, out / "cache", "", made={"nvml_header": nvml_header})
    plain_files.c_library(load(PROJECT / "bundle.lock.yml")["lab_gpus"], out, context)
    return out
