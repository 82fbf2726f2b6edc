"""The checks of GPUs: what each node should offer, what it offers, and what its driver says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..gpu import offer
from ..kube.api import Object
from ..kube.gpu_offer import offered
from .verdict import FAIL, PASS, UNKNOWN, Check

CHANGE = "playbooks/gpu_driver.yml"
RECOVER = "playbooks/gpu_recover.yml"


@dataclass(frozen=True)
class GpuNode:
    """A node of the group `gpu_nodes`.

    :param gpus: number that the inventory says; None where it is what PCI bus and driver show.
    :param replicas: pods that take turns on one.
    :param mig_strategy: how GPUs that MIG has divided are offered, `none`, `single` or `mixed`.
    :param version: of the driver, as the inventory says it; empty where it says none.
    :param info: what `gpu_info` found on the host; empty where the host was not asked.
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
        """Why its driver shows no GPU, though it was asked; else empty."""
        return offer.silence(self.info) if self.asked else ""

    @property
    def expected(self) -> int | None:
        """GPUs of the host; None where nobody knows."""
        return offer.expected(self.info, self.gpus)

    @property
    def wanted(self) -> int | None:
        """What the node has to offer; None where nobody knows."""
        units = offer.units(self.info, self.gpus, self.mig_strategy)
        return None if units is None else units * self.replicas


def gpu_checks(gpus: Mapping[str, Mapping[str, Any]], nodes: Sequence[Object]) -> list[Check]:
    """The checks of a site with GPUs; none for one without.

    :param gpus: node name to the fields of `GpuNode`.
    """
    wanted = {name: GpuNode(**each) for name, each in sorted(gpus.items())}
    if not wanted:
        return []
    offers = {node["metadata"]["name"]: offered(node) for node in nodes}
    return [gpu_drivers(wanted), gpus_offered(wanted, offers), gpus_healthy(wanted, offers)]


def gpu_drivers(wanted: Mapping[str, GpuNode]) -> Check:
    """Every GPU node was asked, and has the driver of the inventory; its module, library and package agree."""
    skewed = [
        f"{name} has the module {each.info.get('module_version') or 'of another version'} loaded, and the library "
        f"{each.info.get('library_version') or '(none)'}: no new GPU pod starts there until {CHANGE} has restarted it"
        for name, each in wanted.items()
        if each.skew
    ]
    dead = [f"the driver of {name} {each.silence}" for name, each in wanted.items() if each.silence]
    silent = [f"the driver of {name} was not asked" for name, each in wanted.items() if not each.asked]
    later = [
        f"{name} has {each.info['pending']}: its GPUs are gone after a restart ({CHANGE} puts that right)"
        for name, each in wanted.items()
        if each.info.get("pending")
    ]
    other = [
        f"{name} has the driver {each.info.get('driver')}, and the inventory says {each.version}: {CHANGE} changes it"
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
    """Every node offers as many GPUs as it has, and as the inventory says."""
    wrong, silent, total = [], [], 0
    for name, each in wanted.items():
        capacity = offers.get(name, (0, 0))[0]
        if each.skew:
            # Its driver shows none, and it offers none; `gpu_drivers` says so.
            continue
        if each.asked and not each.silence and len(each.info["gpus"]) != each.expected:
            who = "the PCI bus" if each.gpus is None else "the inventory"
            wrong.append(f"the driver of {name} shows {len(each.info['gpus'])} GPUs, {who} says {each.expected}")
        elif why := offer.mig_fault(each.info, each.mig_strategy):
            wrong.append(f"{name} {why}")
        elif each.wanted is None:
            silent.append(f"nobody knows how many GPUs {name} has")
        elif capacity != each.wanted:
            wrong.append(f"{name} offers {capacity} GPUs, and should offer {each.wanted}")
        total += capacity
    if wrong or silent:
        return Check("gpus_offered", FAIL if wrong else UNKNOWN, "; ".join(wrong + silent), settles=True)
    return Check("gpus_offered", PASS, f"{total} GPUs on {len(wanted)} nodes")


def gpus_healthy(wanted: Mapping[str, GpuNode], offers: Mapping[str, tuple[int, int]]) -> Check:
    """No GPU is unhealthy, by the device plugin and by the driver; `gpu_drivers` names a driver that shows none."""
    wrong, silent = [], []
    for name, each in wanted.items():
        capacity, allocatable = offers.get(name, (0, 0))
        if allocatable < capacity and not each.skew:
            wrong.append(f"{name} has {capacity - allocatable} unhealthy of {capacity}: repair it, then run {RECOVER}")
        elif each.silence or not (each.asked or capacity):
            silent.append(f"nobody knows how the GPUs of {name} are")
        elif each.asked and not each.info.get("healthy", True) and not each.skew:
            wrong.append(f"the driver of {name} reports a fault (nvidia-smi -q on the host)")
    if wrong or silent:
        return Check("gpus_healthy", FAIL if wrong else UNKNOWN, "; ".join(wrong + silent))
    return Check("gpus_healthy", PASS, "all GPUs are healthy")
