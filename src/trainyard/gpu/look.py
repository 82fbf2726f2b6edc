"""Read the GPUs of this host: NVML first, then `nvidia-smi`, and the host's own records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..core.command import run
from ..core.errors import CommandError, TrainyardError
from ..host.nvidia import module_on_disk
from . import driver, nvml, smi
from .model import Inventory

TIMEOUT = 60
"""Seconds for nvidia-smi; without the persistence daemon, a host with eight GPUs takes 20."""
JOURNAL_TIMEOUT = 30
"""Seconds to search the log since boot."""
NOTHING_FOUND = 1
"""Exit status of journalctl if no line matches."""


def look(binding: Path | None) -> Inventory:
    """Return the GPUs of this host.

    :param binding: file of NVIDIA's binding `pynvml`; without it, only `nvidia-smi` is queried.
    """
    inventory = nvml.read(nvml.load(binding)) if binding else Inventory("none", error="pynvml is not available")
    # nvidia-smi uses the same library, so it does not help if the library does not match the module.
    if inventory.source == "none" and not inventory.mismatch:
        inventory = _ask_program(inventory)
    inventory = replace(
        inventory,
        on_bus=driver.on_bus(),
        next_module_version=module_on_disk() or None,
        package_version=driver.package_version(),
    )
    return inventory.with_versions(driver.module_version(), driver.library_version()).with_xids(_xids())


def _ask_program(before: Inventory) -> Inventory:
    try:
        text = run(smi.QUERY, timeout=TIMEOUT).stdout
    except CommandError as error:
        mismatch = "version mismatch" in str(error)
        return replace(before, mismatch=mismatch, error=f"NVML: {before.error}; nvidia-smi: {error}")
    try:
        capabilities = run(smi.CAPABILITIES, timeout=TIMEOUT).stdout
    except CommandError:
        # nvidia-smi of old drivers does not support this query.
        capabilities = ""
    try:
        return smi.read(text, capabilities)
    except TrainyardError as error:
        return replace(before, error=f"NVML: {before.error}; {error}")


def _xids() -> list[tuple[str, int]]:
    try:
        return driver.xids(run(driver.JOURNAL, timeout=JOURNAL_TIMEOUT, ok=(0, NOTHING_FOUND)).stdout)
    except CommandError:
        # A host without a systemd journal. The health of a GPU does not depend on logged faults.
        return []
