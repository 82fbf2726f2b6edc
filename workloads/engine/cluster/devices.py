"""The GPUs of this process: those allocated to its pod, and those that TensorFlow uses."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from engine.errors import InputError

DEVICES = Path("/dev")
GPU, CPU = "gpu", "cpu"
ALWAYS, WHERE_GIVEN, NEVER = "true", "auto", "false"
"""Values of `require_gpu`: a process must compute on a GPU always, if its pod was given one, or never."""


def allocated() -> int:
    """Return the number of GPUs of the pod: each has a device node, `nvidia` and a number."""
    return sum(re.fullmatch(r"nvidia\d+", path.name) is not None for path in DEVICES.glob("nvidia*"))


def compute(tf: Any, *, require_gpu: str) -> dict[str, Any]:
    """Return the device that this process computes on, for its report.

    :param tf: the module `tensorflow`.
    :param require_gpu: when to refuse the CPU: `ALWAYS`, `WHERE_GIVEN` or `NEVER`.
    :returns: `compute`, which is `gpu` or `cpu`, and `gpu_allocated`, the number of GPUs of the pod.
    :raises InputError: a GPU is required, and TensorFlow finds none; the remedy names the missing part.
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
            "Check the node's driver (trainyard gpus), or set require_gpu to false.",
        )
    return {"compute": GPU if found else CPU, "gpu_allocated": given}


def together(processes: Collection[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the combined device of several processes: a GPU if each uses one; empty if none has reported."""
    if not processes:
        return {}
    return {
        "compute": GPU if all(each["compute"] == GPU for each in processes) else CPU,
        "gpu_allocated": sum(each["gpu_allocated"] for each in processes),
    }
