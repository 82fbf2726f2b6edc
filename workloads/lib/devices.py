"""The GPUs of this process: those that its pod was given, and those that TensorFlow computes on."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from lib.errors import InputError

DEVICES = Path("/dev")
GPU, CPU = "gpu", "cpu"
ALWAYS, WHERE_GIVEN, NEVER = "true", "auto", "false"
"""When a process has to compute on a GPU: wherever it runs, where its pod was given one, or not at all."""


def allocated() -> int:
    """GPUs that the pod was given: each brings its device node, `nvidia` and a number."""
    return sum(re.fullmatch(r"nvidia\d+", path.name) is not None for path in DEVICES.glob("nvidia*"))


def compute(tf: Any, *, require_gpu: str) -> dict[str, Any]:
    """What this process computes on, for its account of itself.

    :param tf: the module `tensorflow`.
    :param require_gpu: when to refuse to compute on the CPU: `ALWAYS`, `WHERE_GIVEN` or `NEVER`.
    :returns: `compute`, which is `gpu` or `cpu`, and `gpu_allocated`, how many GPUs the pod was given.
    :raises InputError: a GPU is required, and TensorFlow finds none; the remedy names what is missing.
    """
    given, found = allocated(), len(tf.config.list_physical_devices("GPU"))
    required = require_gpu == ALWAYS or (require_gpu == WHERE_GIVEN and given)
    if required and not found:
        if not tf.sysconfig.get_build_info().get("is_cuda_build"):
            raise InputError("A GPU is required, and this image's TensorFlow has no CUDA.", "Use the GPU image.")
        if not given:
            raise InputError("A GPU is required, and this pod was given none.", "Set gpus of the run to 1.")
        raise InputError(
            f"A GPU is required, and TensorFlow finds none of the {given} of this pod.",
            "Look at the node's driver (trainyard gpus), or set require_gpu to false.",
        )
    return {"compute": GPU if found else CPU, "gpu_allocated": given}


def together(processes: Collection[Mapping[str, Any]]) -> dict[str, Any]:
    """What several processes compute on: a GPU where each of them does; nothing where none has said it."""
    if not processes:
        return {}
    return {
        "compute": GPU if all(each["compute"] == GPU for each in processes) else CPU,
        "gpu_allocated": sum(each["gpu_allocated"] for each in processes),
    }
