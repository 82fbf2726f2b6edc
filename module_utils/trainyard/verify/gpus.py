"""The checks of GPUs: what each node should offer, what it offers, and what its driver says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..kube.api import Object
from ..training.gpus import offered
from .verdict import FAIL, PASS, UNKNOWN, Check

CHANGE = "playbooks/gpu_driver.yml"
RECOVER = "playbooks/gpu_recover.yml"


@dataclass(frozen=True)
class GpuNode:
    """A node of the group `gpu_nodes`.

    :param gpus: number that the inventory says; None where it is what the driver shows.
    :param replicas: pods that take turns on one.
    :param counted: false where MIG offers its GPUs under the names of profiles.
    :param info: what `gpu_info` found on the host; empty where the host was not asked.
    """

    gpus: int | None = None
    replicas: int = 1
    counted: bool = True
    info: Mapping[str, Any] = field(default_factory=dict)

    @property
    def asked(self) -> bool:
        return "gpus" in self.info

    @property
    def skew(self) -> bool:
        return bool(self.info.get("skew"))

    @property
    def wanted(self) -> int | None:
        """What the node has to offer; None where nobody knows."""
        if self.gpus is None and not self.asked:
            return None
        return (len(self.info["gpus"]) if self.gpus is None else self.gpus) * self.replicas


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
    """Every GPU node was asked, and has one version of its driver: loaded module and library agree."""
    skewed = [
        f"{name} has the module {each.info.get('module_version') or '(none)'} loaded, and the library "
        f"{each.info.get('library_version') or '(none)'}: no new GPU pod starts there until {CHANGE} has restarted it"
        for name, each in wanted.items()
        if each.skew
    ]
    silent = [f"the driver of {name} was not asked" for name, each in wanted.items() if not each.asked]
    if skewed or silent:
        return Check("gpu_drivers", FAIL if skewed else UNKNOWN, "; ".join(skewed + silent))
    versions = sorted({str(each.info.get("driver")) for each in wanted.values()})
    return Check("gpu_drivers", PASS, f"driver {', '.join(versions)} on {len(wanted)} nodes")


def gpus_offered(wanted: Mapping[str, GpuNode], offers: Mapping[str, tuple[int, int]]) -> Check:
    """Every node offers as many GPUs as it has, and as the inventory says."""
    wrong, silent, total = [], [], 0
    for name, each in wanted.items():
        capacity = offers.get(name, (0, 0))[0]
        if each.skew:
            # Its driver shows none, and it offers none; `gpu_drivers` says so.
            continue
        if each.gpus is not None and each.asked and len(each.info["gpus"]) != each.gpus:
            wrong.append(f"the driver of {name} shows {len(each.info['gpus'])} GPUs, the inventory says {each.gpus}")
        elif not each.counted:
            continue
        elif each.wanted is None:
            silent.append(f"nobody knows how many GPUs {name} has")
        elif capacity != each.wanted:
            wrong.append(f"{name} offers {capacity} GPUs, and should offer {each.wanted}")
        total += capacity
    if wrong or silent:
        return Check("gpus_offered", FAIL if wrong else UNKNOWN, "; ".join(wrong + silent), settles=True)
    return Check("gpus_offered", PASS, f"{total} GPUs on {len(wanted)} nodes")


def gpus_healthy(wanted: Mapping[str, GpuNode], offers: Mapping[str, tuple[int, int]]) -> Check:
    """No GPU is unhealthy, by the device plugin and by the driver."""
    wrong = []
    for name, each in wanted.items():
        capacity, allocatable = offers.get(name, (0, 0))
        if allocatable < capacity and not each.skew:
            wrong.append(f"{name} has {capacity - allocatable} unhealthy of {capacity}: mend it, then {RECOVER}")
        elif each.asked and not each.info.get("healthy", True) and not each.skew:
            wrong.append(f"the driver of {name} reports a fault (nvidia-smi -q on the host)")
    return Check("gpus_healthy", FAIL if wrong else PASS, "; ".join(wrong) or "all GPUs are healthy")
