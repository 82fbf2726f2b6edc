"""A host's GPUs as text for the textfile collector of Prometheus' node exporter.

Names, labels and units are those of NVIDIA's DCGM exporter, so that its dashboards and alerts work. Sources of names,
types and texts: `etc/default-counters.csv` of NVIDIA/dcgm-exporter, and field 250 of `dcgm_fields.h` for
`DCGM_FI_DEV_FB_TOTAL`, which is not among its defaults. Source of the labels: the template in its `render_metrics.go`.
"""

from __future__ import annotations

from collections.abc import Callable

from .gpu_model import Gpu, Inventory

Value = Callable[[Gpu], "float | None"]

METRICS: tuple[tuple[str, str, str, Value], ...] = (
    ("DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature (in C).", lambda gpu: gpu.temperature_celsius),
    ("DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw (in W).", lambda gpu: gpu.power_draw_watts),
    ("DCGM_FI_DEV_GPU_UTIL", "gauge", "GPU utilization (in %).", lambda gpu: gpu.utilization_percent),
    ("DCGM_FI_DEV_FB_USED", "gauge", "Framebuffer memory used (in MiB).", lambda gpu: gpu.memory_used_mib),
    ("DCGM_FI_DEV_FB_TOTAL", "gauge", "Framebuffer memory (in MiB).", lambda gpu: gpu.memory_total_mib),
    (
        "DCGM_FI_DEV_XID_ERRORS",
        "gauge",
        "Value of the last XID error encountered.",
        lambda gpu: gpu.xids[-1] if gpu.xids else 0,
    ),
    (
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
        "counter",
        "Total number of double-bit volatile ECC errors.",
        lambda gpu: gpu.ecc_uncorrected,
    ),
    ("DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", "Whether remapping of rows has failed.", lambda gpu: gpu.rows_failed),
)


def render(inventory: Inventory, hostname: str) -> str:
    """Return the text of the file. Unknown values have no line."""
    lines = []
    for name, kind, what, value in METRICS:
        samples = [(gpu, number) for gpu in inventory.gpus if (number := value(gpu)) is not None]
        if samples:
            lines += [f"# HELP {name} {what}", f"# TYPE {name} {kind}"]
            lines += [f"{name}{{{_labels(gpu, inventory, hostname)}}} {float(number):g}" for gpu, number in samples]
    return "".join(f"{line}\n" for line in lines)


def series(text: str) -> list[str]:
    """Return the names and labels of a file's series, without the values."""
    return [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]


def _labels(gpu: Gpu, inventory: Inventory, hostname: str) -> str:
    labels = {
        "gpu": str(gpu.index),
        "UUID": gpu.uuid,
        "pci_bus_id": gpu.pci_bus_id or "",
        "device": f"nvidia{gpu.index if gpu.minor is None else gpu.minor}",
        "modelName": gpu.name,
        "Hostname": hostname,
        "DCGM_FI_DRIVER_VERSION": inventory.driver or "",
    }
    escaped = {
        key: value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for key, value in labels.items()
    }
    return ",".join(f'{key}="{value}"' for key, value in escaped.items())
