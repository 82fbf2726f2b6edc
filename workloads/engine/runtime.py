"""Versions of the image, and of the node's driver and GPU, for `engine.compat`."""

from __future__ import annotations

import platform
import re
from importlib import metadata
from pathlib import Path
from typing import Any

DRIVER = Path("/proc/driver/nvidia/version")
"""File of the node, visible in every container on it; missing if no kernel module is loaded."""
VERSION = re.compile(r"Kernel Module(?: for \S+)?\s+(\d[\d.]+)")


def installed(package: str) -> str:
    """Return the version of a package of this environment; empty if it is missing."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def versions(tf: Any) -> dict[str, str]:
    """Return versions as the fields of `compat.Combination`; those of CUDA, driver and GPU only in an image with CUDA.

    :param tf: the module `tensorflow`.
    """
    found = {"tensorflow": tf.__version__, "python": platform.python_version()}
    build = tf.sysconfig.get_build_info()
    if not build.get("is_cuda_build"):
        return found
    # TensorFlow reports the versions it was built with; an image may contain newer libraries, for newer GPUs.
    found |= {
        "cuda": installed("nvidia-cuda-runtime-cu12") or str(build["cuda_version"]),
        "cudnn": installed("nvidia-cudnn-cu12") or str(build["cudnn_version"]),
    }
    if DRIVER.is_file() and (match := VERSION.search(DRIVER.read_text(encoding="utf-8"))):
        found["driver"] = match[1]
    capabilities = [
        tf.config.experimental.get_device_details(gpu).get("compute_capability")
        for gpu in tf.config.list_physical_devices("GPU")
    ]
    known = [capability for capability in capabilities if capability]
    if known:
        found["compute_capability"] = ".".join(str(part) for part in min(known))
    return found
