"""A host that seems to have GPUs: what the bundle makes of its entry `lab_gpus`, in a folder."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

LIBRARIES = "usr/lib/x86_64-linux-gnu"


class Host:
    """A folder as a host's root."""

    def __init__(self, root: Path, made: Path) -> None:
        self.root = root
        shutil.copytree(made, root / "usr/lib/lab-gpus")

    def control(self, *arguments: str, root: Path | None = None) -> subprocess.CompletedProcess[str]:
        program = self.root / "usr/lib/lab-gpus/lab-gpus"
        argv = [sys.executable, str(program), "--root", str(root or self.root), *arguments]
        return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30)

    def install(self, *arguments: str) -> None:
        options = ("--driver=580.95.05", "--cuda=13.0", "--seed=lab-one")
        assert self.control("install", *arguments, *options).stderr == ""

    def smi(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {"LD_LIBRARY_PATH": str(self.root / LIBRARIES)}
        argv = [str(self.root / "usr/bin/nvidia-smi"), *arguments]
        return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=30)

    def library(self) -> ctypes.CDLL:
        return ctypes.CDLL(os.path.realpath(self.root / LIBRARIES / "libnvidia-ml.so.1"))
