"""Checks of GPUs: compare what each node should offer, what it offers, and what its driver reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..gpu import offer
from .verdict import FAIL, PASS, UNKNOWN, Check

CHANGE = "playbooks/gpu_driver.yml"
RECOVER = "playbooks/gpu_recover.yml"


@dataclass(frozen=True)
class GpuNode:
    """A node of the group `gpu_nodes`.

    :param gpus: number of GPUs in the inventory; None uses the number on the PCI bus and in the driver.
    :param replicas: pods that share one GPU in turns.
    :param mig_strategy: how GPUs divided by MIG are offered: `none`, `single` or `mixed`.
    :param version: of the driver in the inventory; empty if it is not pinned.
    :param info: facts of `gpu_info` on the host; empty if the host was not queried.
    """

    gpus: int | None = None
    replicas: int = 1
    mig_strategy: str = "none"
    version: str = ""
    info: Mapping[str, Any] = field(default_factory=dict)

    @property
    def asked(self) -> bool:
        return "gpus" in self.info

    @property
    def skew(self) -> bool:
        return bool(self.info.get("skew"))

    @property
    def silence(self) -> str:
        """The reason why its driver shows no GPU; empty if it shows one or was not queried."""
        return offer.silence(self.info) if self.asked else ""

    @property
    def expected(self) -> int | None:
        """GPUs of the host; None if unknown."""
        return offer.expected(self.info, self.gpus)

    @property
    def wanted(self) -> int | None:
        """GPUs that the node must offer; None if unknown."""
        units = offer.units(self.info, self.gpus, self.mig_strategy)
        return None if units is None else units * self.replicas


def gpu_drivers(wanted: Mapping[str, GpuNode]) -> Check:
    """Check that each GPU node has the driver of the inventory, and that module, library and package agree."""
    skewed = [
        f"{name} has the module {each.info.get('module_version') or 'of another version'} loaded but the library "
        f"{each.info.get('library_version') or '(none)'}: no new GPU pod starts there until {CHANGE} has restarted it"
        for name, each in wanted.items()
        if each.skew
    ]
    dead = [f"the driver of {name} {each.silence}" for name, each in wanted.items() if each.silence]
    silent = [f"the driver of {name} was not queried" for name, each in wanted.items() if not each.asked]
    later = [
        f"{name} has {each.info['pending']}: its GPUs are gone after a restart (run {CHANGE} to prevent that)"
        for name, each in wanted.items()
        if each.info.get("pending")
    ]
    other = [
        f"{name} has the driver {each.info.get('driver')}, but the inventory has {each.version}: run {CHANGE}"
        for name, each in wanted.items()
        if each.asked and not (each.skew or each.silence) and not str(each.info.get("driver")).startswith(each.version)
    ]
    if wrong := skewed + dead + later + other:
        return Check("gpu_drivers", FAIL, "; ".join(wrong + silent))
    if silent:
        return Check("gpu_drivers", UNKNOWN, "; ".join(silent))
    versions = sorted({str(each.info.get("driver")) for each in wanted.values()})
    unpinned = [name for name, each in wanted.items() if not each.version]
    note = f" (unpinned on {', '.join(unpinned)}: nvidia_driver_version)" if unpinned else ""
    return Check("gpu_drivers", PASS, f"driver {', '.join(versions)} on {len(wanted)} nodes{note}")


def gpus_offered(wanted: Mapping[str, GpuNode], offers: Mapping[str, tuple[int, int]]) -> Check:
    """Check that each node offers as many GPUs as it has and as the inventory requires."""
    wrong, silent, total = [], [], 0
    for name, each in wanted.items():
        capacity = offers.get(name, (0, 0))[0]
        if each.skew:
            # Its driver shows none, so it offers none; `gpu_drivers` reports that.
            continue
        if each.asked and not each.silence and len(each.info["gpus"]) != each.expected:
            who = "the PCI bus" if each.gpus is None else "the inventory"
            wrong.append(f"the driver of {name} shows {len(each.info['gpus'])} GPUs, but {who} has {each.expected}")
        elif why := offer.mig_fault(each.info, each.mig_strategy):
            wrong.append(f"{name} {why}")
        elif each.wanted is None:
            silent.append(f"the number of GPUs of {name} is unknown")
        elif capacity != each.wanted:
            wrong.append(f"{name} offers {capacity} GPUs but should offer {each.wanted}")
        total += capacity
    if wrong or silent:
        return Check("gpus_offered", FAIL if wrong else UNKNOWN, "; ".join(wrong + silent), settles=True)
    return Check("gpus_offered", PASS, f"{total} GPUs on {len(wanted)} nodes")


def gpus_healthy(wanted: Mapping[str, GpuNode], offers: Mapping[str, tuple[int, int]]) -> Check:
    """Check that device plugin and driver report no unhealthy GPU; `gpu_drivers` covers a driver that shows none."""
    wrong, silent = [], []
    for name, each in wanted.items():
        capacity, allocatable = offers.get(name, (0, 0))
        if allocatable < capacity and not each.skew:
            wrong.append(f"{name} has {capacity - allocatable} unhealthy of {capacity}: repair it, then run {RECOVER}")
        elif each.silence or not (each.asked or capacity):
            silent.append(f"the health of the GPUs of {name} is unknown")
        elif each.asked and not each.info.get("healthy", True) and not each.skew:
            wrong.append(f"the driver of {name} reports a fault (nvidia-smi -q on the host)")
    if wrong or silent:
        return Check("gpus_healthy", FAIL if wrong else UNKNOWN, "; ".join(wrong + silent))
    return Check("gpus_healthy", PASS, "all GPUs are healthy")
