#!/usr/bin/env python3
"""Write the columns of compat.json that come from TensorFlow's wheels; the typed ones stay unchanged.

    python3 tools/compat_columns.py

It queries the Python index with pip, for metadata only: no wheel is downloaded. The file is JSON, because the training
image reads it, too, and has no YAML parser.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TARGET = Path(__file__).resolve().parent.parent / "workloads" / "compat.json"
RELEASES = ("2.16", "2.17", "2.18", "2.19", "2.20", "2.21")
PLATFORMS = ("manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux_2_27_x86_64", "manylinux_2_28_x86_64")
PYTHON = "3.12"
"""A version for which every release has a wheel; all of a release's wheels have the same metadata."""
PARTS = {"cuda": "nvidia-cuda-runtime-cu12", "cudnn": "nvidia-cudnn-cu12", "nccl": "nvidia-nccl-cu12"}
"""Column -> package of the extra `and-cuda`; the column holds its oldest allowed version."""
TIMEOUT = 300
"""Seconds per query."""


def metadata(requirement: str) -> dict[str, Any]:
    """Return the metadata of the newest wheel that satisfies a requirement.

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
    """Return a release's columns from the metadata of its wheel and of the matching tf_keras.

    :raises ValueError: a column is missing in the metadata.
    """
    pythons = [re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line) for line in wheel["classifier"]]
    needs = wheel["requires_dist"]
    return {
        "wheel": wheel["version"],
        "python": sorted((found[1] for found in pythons if found), key=lambda text: int(text.split(".")[1])),
        "keras": oldest(needs, "keras"),
        "tf_keras": tf_keras["version"],
        **{name: oldest(needs, package) for name, package in PARTS.items()},
        # The third number of CUDA's packages differs from that of the toolkit.
        "cuda": ".".join(oldest(needs, PARTS["cuda"]).split(".")[:2]),
    }


def oldest(needs: list[str], package: str) -> str:
    """Return the oldest version of a package that these requirements allow."""
    for need in needs:
        found = re.match(r"([\w.-]+)([^;]*)", need.replace(" ", ""))
        bound = re.search(r"(?:==|>=|~=)([\d.]+)", found[2]) if found and found[1] == package else None
        if bound:
            return bound[1]
    raise ValueError(f"The wheel's metadata does not name the {package} that it needs.")


def render(document: dict[str, Any]) -> str:
    """Return the file's text."""
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
