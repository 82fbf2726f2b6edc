"""A host's GPUs as facts: the same fields, whether NVIDIA's library or its program `nvidia-smi` was asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

ACTIONS = ("none", "reset", "reboot", "drain_p2p", "drain_and_reset")
"""What a driver recommends for a GPU, by its number in `nvmlDeviceGpuRecoveryAction_t`; later ones are `other`."""


@dataclass(frozen=True)
class Gpu:
    """A GPU. None is what it, or whoever was asked, does not know.

    :param index: its number in the order of the PCI bus, by which CUDA and `nvidia-smi` call it; `minor` is the number
        of its device node, which can be another.
    :param memory_total_mib: MiB, as all memory; `memory_used_mib` is without what the driver keeps for itself.
    :param compute_capability: such as "8.0".
    :param mig: `enabled`, `disabled`, or None where the GPU cannot be divided.
    :param mig_devices: into how many parts it is divided.
    :param ecc_uncorrected: memory errors since the driver was loaded that could not be corrected.
    :param rows_failed: memory that was found broken and could not be replaced; `rows_pending`: will be at a reset.
    :param recovery_action: one of `ACTIONS` or `other`.
    :param lost: it does not answer any more.
    :param xids: faults that the kernel has logged since the host was started, oldest first.
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
        """Why the GPU should not be given to a pod; empty for a healthy one.

        Logged faults are not among them: a reset makes a GPU good, and the log keeps what was before.
        """
        found = ["it is lost: it has fallen off the bus"] if self.lost else []
        if self.ecc_uncorrected:
            found.append(f"{self.ecc_uncorrected} errors of its memory could not be corrected")
        if self.rows_failed:
            found.append("broken rows of its memory could not be replaced")
        if self.rows_pending:
            found.append("broken rows of its memory are replaced at its next reset")
        if self.recovery_action not in (None, "none"):
            found.append(f"its driver asks for: {self.recovery_action}")
        return found

    def facts(self) -> dict[str, Any]:
        """What the module returns."""
        problems = self.problems
        return {**asdict(self), "xids": list(self.xids), "healthy": not problems, "problems": problems}


@dataclass(frozen=True)
class Inventory:
    """The GPUs of a host and their driver.

    :param source: who was asked: `nvml`, `nvidia-smi`, or `none` where neither answers; `error` says why.
    :param driver: version that whoever was asked reports, `cuda` the newest CUDA that it knows.
    :param module_version: version of the loaded kernel module, `library_version` that of the library on the disk.
    :param next_module_version: version of the kernel module that the next boot loads, `package_version` of the package
        that has the library; None where nobody knows.
    :param mismatch: the library itself says that it does not fit the module.
    :param on_bus: GPUs that are seen by PCI; None where none is, as on a host that has no such bus.
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
        """Whether the driver was changed on the disk and not in the kernel; new programs cannot use the GPUs then."""
        known = self.module_version and self.library_version
        return self.mismatch or bool(known and self.module_version != self.library_version)

    @property
    def pending(self) -> str:
        """What ends the GPUs' work later though they work now, after "w1 has"; empty for nothing."""
        library, following, package = self.library_version, self.next_module_version, self.package_version
        found = []
        if library and following and following != library:
            found.append(f"the module {following} for its next boot, and the library {library}")
        if library and package and package != library:
            found.append(f"the library {library}, and the package {package} for it")
        return "; ".join(found)

    def with_versions(self, module: str | None, library: str | None) -> Inventory:
        """The versions that were found elsewhere; where an answer came, library and module agree with it."""
        return replace(self, module_version=module or self.driver, library_version=library or self.driver)

    def with_xids(self, found: Sequence[tuple[str, int]]) -> Inventory:
        """Logged faults, as pairs of PCI bus address and XID."""
        gpus = tuple(
            replace(gpu, xids=tuple(xid for bus, xid in found if same_bus(bus, gpu.pci_bus_id or "")))
            for gpu in self.gpus
        )
        return replace(self, gpus=gpus)

    def facts(self) -> dict[str, Any]:
        """What the module returns."""
        facts = {**asdict(self), "gpus": [gpu.facts() for gpu in self.gpus], "skew": self.skew, "pending": self.pending}
        well = bool(self.gpus) and not self.skew and all(not gpu.problems for gpu in self.gpus)
        return {**facts, "healthy": well}


def same_bus(one: str, other: str) -> bool:
    """Whether two addresses such as 0000:3b:00 (kernel) and 00000000:3B:00.0 (NVML) are one."""
    return bool(one and other) and _bus(one) == _bus(other)


def _bus(address: str) -> tuple[int, ...]:
    return tuple(int(part, 16) for part in address.partition(".")[0].split(":"))
