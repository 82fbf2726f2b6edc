"""A host's GPUs as facts: the same fields from NVML and from `nvidia-smi`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

ACTIONS = ("none", "reset", "reboot", "drain_p2p", "drain_and_reset")
"""Recovery actions that a driver recommends, indexed by `nvmlDeviceGpuRecoveryAction_t`; higher numbers are `other`."""


@dataclass(frozen=True)
class Gpu:
    """A GPU. None means that the GPU or the source does not report the value.

    :param index: number in PCI bus order, as used by CUDA and `nvidia-smi`; `minor` is the number of the device node,
        which can differ.
    :param memory_total_mib: memory in MiB; `memory_used_mib` excludes the memory that the driver reserves.
    :param compute_capability: such as "8.0".
    :param mig: `enabled`, `disabled`, or None if the GPU does not support MIG.
    :param mig_devices: number of MIG instances.
    :param ecc_uncorrected: uncorrectable memory errors since the driver was loaded.
    :param rows_failed: a broken memory row could not be remapped; `rows_pending`: rows are remapped at the next reset.
    :param recovery_action: one of `ACTIONS` or `other`.
    :param lost: the GPU no longer responds.
    :param xids: faults that the kernel logged since boot, oldest first.
    """

    index: int
    uuid: str
    name: str
    minor: int | None = None
    serial: str | None = None
    pci_bus_id: str | None = None
    architecture: str | None = None
    compute_capability: str | None = None
    memory_total_mib: int | None = None
    memory_used_mib: int | None = None
    temperature_celsius: int | None = None
    power_draw_watts: float | None = None
    power_limit_watts: float | None = None
    utilization_percent: int | None = None
    mig: str | None = None
    mig_devices: int = 0
    ecc_uncorrected: int | None = None
    rows_pending: bool | None = None
    rows_failed: bool | None = None
    recovery_action: str | None = None
    lost: bool = False
    xids: tuple[int, ...] = ()

    @property
    def problems(self) -> list[str]:
        """Return the reasons not to assign the GPU to a pod; empty for a healthy GPU.

        Logged faults are excluded: a reset repairs a GPU, but the log keeps the earlier faults.
        """
        found = ["it is lost: it has fallen off the bus"] if self.lost else []
        if self.ecc_uncorrected:
            found.append(f"it has {self.ecc_uncorrected} uncorrectable memory errors")
        if self.rows_failed:
            found.append("broken rows of its memory could not be remapped")
        if self.rows_pending:
            found.append("broken rows of its memory are remapped at its next reset")
        if self.recovery_action not in (None, "none"):
            found.append(f"its driver asks for: {self.recovery_action}")
        return found

    def facts(self) -> dict[str, Any]:
        """Return the module's return values for this GPU."""
        problems = self.problems
        return {**asdict(self), "xids": list(self.xids), "healthy": not problems, "problems": problems}


@dataclass(frozen=True)
class Inventory:
    """The GPUs of a host and their driver.

    :param source: `nvml`, `nvidia-smi`, or `none` if neither answers; `error` gives the reason.
    :param driver: driver version that the source reports; `cuda` is the newest CUDA version that it supports.
    :param module_version: version of the loaded kernel module; `library_version` is that of the library on the disk.
    :param next_module_version: version of the kernel module that the next boot loads; `package_version` is that of the
        package that owns the library. None if unknown.
    :param mismatch: the library reports that it does not match the module.
    :param on_bus: number of GPUs on the PCI bus; None if there are none, as on a host without such a bus.
    """

    source: str
    driver: str | None = None
    cuda: str | None = None
    gpus: tuple[Gpu, ...] = ()
    module_version: str | None = None
    library_version: str | None = None
    next_module_version: str | None = None
    package_version: str | None = None
    mismatch: bool = False
    error: str | None = None
    on_bus: int | None = None

    @property
    def skew(self) -> bool:
        """Return whether the driver was changed on disk but not in the kernel; new programs then find no GPUs."""
        known = self.module_version and self.library_version
        return self.mismatch or bool(known and self.module_version != self.library_version)

    @property
    def pending(self) -> str:
        """Return faults that stop the GPUs later, as the end of a sentence after "w1 has"; empty if there are none."""
        library, following, package = self.library_version, self.next_module_version, self.package_version
        found = []
        if library and following and following != library:
            found.append(f"the module {following} for its next boot, and the library {library}")
        if library and package and package != library:
            found.append(f"the library {library}, and the package {package} for it")
        return "; ".join(found)

    def with_versions(self, module: str | None, library: str | None) -> Inventory:
        """Add versions from the host's records. A missing one equals the driver version that the source reports."""
        return replace(self, module_version=module or self.driver, library_version=library or self.driver)

    def with_xids(self, found: Sequence[tuple[str, int]]) -> Inventory:
        """Add logged faults, given as pairs of PCI bus address and XID."""
        gpus = tuple(
            replace(gpu, xids=tuple(xid for bus, xid in found if same_bus(bus, gpu.pci_bus_id or "")))
            for gpu in self.gpus
        )
        return replace(self, gpus=gpus)

    def facts(self) -> dict[str, Any]:
        """Return the module's return values for the host."""
        facts = {**asdict(self), "gpus": [gpu.facts() for gpu in self.gpus], "skew": self.skew, "pending": self.pending}
        well = bool(self.gpus) and not self.skew and all(not gpu.problems for gpu in self.gpus)
        return {**facts, "healthy": well}


def same_bus(one: str, other: str) -> bool:
    """Return whether two addresses such as 0000:3b:00 (kernel) and 00000000:3B:00.0 (NVML) are the same."""
    return bool(one and other) and _bus(one) == _bus(other)


def _bus(address: str) -> tuple[int, ...]:
    return tuple(int(part, 16) for part in address.partition(".")[0].split(":"))
