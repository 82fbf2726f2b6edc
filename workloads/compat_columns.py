#!/usr/bin/env python3
"""Writes the columns of compat.json that TensorFlow's wheels record themselves; the typed ones stay as they are.

    python3 workloads/compat_columns.py

Asks the Python index by pip, for metadata alone: no wheel is downloaded. The file is JSON, because the training image
reads it, too, and has no parser of YAML.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TARGET = Path(__file__).with_name("compat.json")
RELEASES = ("2.16", "2.17", "2.18", "2.19", "2.20", "2.21")
PLATFORMS = ("manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux_2_27_x86_64", "manylinux_2_28_x86_64")
PYTHON = "3.12"
"""One that every release has a wheel for; all of a release's wheels have the same metadata."""
PARTS = {"cuda": "nvidia-cuda-runtime-cu12", "cudnn": "nvidia-cudnn-cu12", "nccl": "nvidia-nccl-cu12"}
"""Column -> package of the extra `and-cuda`, whose oldest admitted version it is."""
TIMEOUT = 300
"""Seconds for one question."""


def metadata(requirement: str) -> dict[str, Any]:
    """Metadata of the newest wheel that meets a requirement.

    :raises CalledProcessError: pip finds none.
    """
    with tempfile.TemporaryDirectory() as folder:
        argv = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--dry-run",
            "--no-deps",
        ]
        argv += ["--ignore-installed", "--only-binary=:all:", f"--python-version={PYTHON}", f"--target={folder}"]
        argv += [*(f"--platform={platform}" for platform in PLATFORMS), "--report=-", requirement]
        report = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=TIMEOUT).stdout
    (found,) = json.loads(report)["install"]
    return dict(found["metadata"])


def columns(wheel: dict[str, Any], tf_keras: dict[str, Any]) -> dict[str, Any]:
    """A release's columns from the metadata of its wheel, and of the tf_keras that belongs to it.

    :raises ValueError: the metadata does not say one of them.
    """
    pythons = [re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line) for line in wheel["classifier"]]
    needs = wheel["requires_dist"]
    return {
        "wheel": wheel["version"],
        "python": sorted((found[1] for found in pythons if found), key=lambda text: int(text.split(".")[1])),
        "keras": oldest(needs, "keras"),
        "tf_keras": tf_keras["version"],
        **{name: oldest(needs, package) for name, package in PARTS.items()},
        # The third number of CUDA's packages is not that of the toolkit.
        "cuda": ".".join(oldest(needs, PARTS["cuda"]).split(".")[:2]),
    }


def oldest(needs: list[str], package: str) -> str:
    """The oldest version of a package that one of these requirements admits."""
    for need in needs:
        found = re.match(r"([\w.-]+)([^;]*)", need.replace(" ", ""))
        bound = re.search(r"(?:==|>=|~=)([\d.]+)", found[2]) if found and found[1] == package else None
        if bound:
            return bound[1]
    raise ValueError(f"The wheel's metadata does not say which {package} it needs.")


def render(document: dict[str, Any]) -> str:
    """The file's text."""
    return json.dumps(document, indent=2) + "\n"


def main() -> None:
    document = json.loads(TARGET.read_text(encoding="utf-8"))
    document["tensorflow"] = {
        release: columns(metadata(f"tensorflow~={release}.0"), metadata(f"tf_keras~={release}.0"))
        for release in RELEASES
    }
    TARGET.write_text(render(document), encoding="utf-8")


if __name__ == "__main__":
    main()
