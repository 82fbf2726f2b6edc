"""GPUs as reported by NVIDIA's management library (NVML), through NVIDIA's own binding `pynvml`."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..core.errors import TrainyardError
from .gpu_model import ACTIONS, Gpu, Inventory

ARCHITECTURES = {
    2: "Kepler",
    3: "Maxwell",
    4: "Pascal",
    5: "Volta",
    6: "Turing",
    7: "Ampere",
    8: "Ada Lovelace",
    9: "Hopper",
    10: "Blackwell",
}
"""NVML_DEVICE_ARCH_* of nvml.h, with the names that nvidia-smi prints."""


def load(path: Path) -> Any:
    """Load the binding from its file.

    :raises TrainyardError: the file is missing or is not Python.
    """
    spec = importlib.util.spec_from_file_location("pynvml", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise TrainyardError(f"NVIDIA's NVML binding does not exist at {path}.")
    module = importlib.util.module_from_spec(spec)
    # The module looks itself up by this name.
    sys.modules["pynvml"] = module
    spec.loader.exec_module(module)
    return module


def read(nvml: Any) -> Inventory:
    """Query the library.

    :param nvml: the module `pynvml`.
    :returns: the inventory; `source` is none, with an error, if the library or driver is missing or does not match.
    """
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        mismatch = error.value == nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH
        return Inventory("none", mismatch=mismatch, error=str(error))
    try:
        cuda = nvml.nvmlSystemGetCudaDriverVersion_v2()
        gpus = tuple(_gpu(nvml, index) for index in range(nvml.nvmlDeviceGetCount()))
        return Inventory("nvml", nvml.nvmlSystemGetDriverVersion(), f"{cuda // 1000}.{cuda % 1000 // 10}", gpus)
    except nvml.NVMLError as error:
        # NVML can fail after a successful start, for example while the driver is unloaded. `nvidia-smi` is tried next.
        return Inventory("none", error=str(error))
    finally:
        nvml.nvmlShutdown()


class _Asked:
    """Query one GPU, and record whether it was lost meanwhile. A query that the GPU or driver does not support returns
    None."""

    def __init__(self, nvml: Any) -> None:
        self.nvml = nvml
        self.lost = False

    def __call__(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except self.nvml.NVMLError as error:
            self.lost = self.lost or error.value == self.nvml.NVML_ERROR_GPU_IS_LOST
            return None


def _gpu(nvml: Any, index: int) -> Gpu:
    ask = _Asked(nvml)
    device = ask(nvml.nvmlDeviceGetHandleByIndex, index)
    if device is None:
        return Gpu(index, "", "", lost=True)
    memory = ask(nvml.nvmlDeviceGetMemoryInfo, device, nvml.nvmlMemory_v2)
    capability = ask(nvml.nvmlDeviceGetCudaComputeCapability, device)
    utilization = ask(nvml.nvmlDeviceGetUtilizationRates, device)
    rows = ask(nvml.nvmlDeviceGetRemappedRows, device)
    pci = ask(nvml.nvmlDeviceGetPciInfo, device)
    mig = ask(nvml.nvmlDeviceGetMigMode, device)
    draw, limit = ask(nvml.nvmlDeviceGetPowerUsage, device), ask(nvml.nvmlDeviceGetEnforcedPowerLimit, device)
    uncorrected = (nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC)
    gpu = {
        "uuid": ask(nvml.nvmlDeviceGetUUID, device) or "",
        "name": ask(nvml.nvmlDeviceGetName, device) or "",
        "minor": ask(nvml.nvmlDeviceGetMinorNumber, device),
        "serial": ask(nvml.nvmlDeviceGetSerial, device),
        "pci_bus_id": pci and pci.busId,
        "architecture": ARCHITECTURES.get(ask(nvml.nvmlDeviceGetArchitecture, device)),
        "compute_capability": capability and f"{capability[0]}.{capability[1]}",
        "memory_total_mib": memory and memory.total >> 20,
        "memory_used_mib": memory and memory.used >> 20,
        "temperature_celsius": ask(nvml.nvmlDeviceGetTemperature, device, nvml.NVML_TEMPERATURE_GPU),
        "power_draw_watts": None if draw is None else draw / 1000,
        "power_limit_watts": None if limit is None else limit / 1000,
        "utilization_percent": utilization and utilization.gpu,
        "mig": mig and ("enabled" if mig[0] else "disabled"),
        "mig_devices": _mig_devices(nvml, ask, device) if mig and mig[0] else 0,
        "ecc_uncorrected": ask(nvml.nvmlDeviceGetTotalEccErrors, device, *uncorrected),
        "rows_pending": rows and bool(rows[2]),
        "rows_failed": rows and bool(rows[3]),
        "recovery_action": _recovery_action(nvml, ask, device),
    }
    return Gpu(index, **gpu, lost=ask.lost)


def _mig_devices(nvml: Any, ask: _Asked, device: Any) -> int:
    most = ask(nvml.nvmlDeviceGetMaxMigDeviceCount, device) or 0
    return sum(ask(nvml.nvmlDeviceGetMigDeviceHandleByIndex, device, number) is not None for number in range(most))


def _recovery_action(nvml: Any, ask: _Asked, device: Any) -> str | None:
    values = ask(nvml.nvmlDeviceGetFieldValues, device, [nvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION])
    if values is None or values[0].nvmlReturn:
        return None
    number = values[0].value.uiVal
    return ACTIONS[number] if number < len(ACTIONS) else "other"
