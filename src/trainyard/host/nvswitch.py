"""NVSwitches of a host: if it has any, programs cannot use its GPUs until NVIDIA's fabric manager runs.

This check is needed because the driver answers for each GPU without a fabric manager, so all other checks pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..core.errors import CommandError
from .nvidia import devices
from .units import properties_of

CLASS = ("0x0680",)
"""PCI class of an NVSwitch: bridge, other."""

FABRIC_MANAGER = "nvidia-fabricmanager.service"


@dataclass(frozen=True)
class Fabric:
    """Observed properties of a host.

    :param switches: number of NVSwitches, without those passed through to virtual machines.
    :param manager: whether the fabric manager service runs; false without switches.
    """

    switches: int
    manager: bool


def observe(root: Path = Path("/")) -> Fabric:
    """Read the NVSwitches from the PCI bus, and the state of the service."""
    switches = len(devices(CLASS, root))
    return Fabric(switches, manager=bool(switches) and _manager_runs())


def problems(fabric: Fabric, *, installed: bool) -> list[str]:
    """Return why no program could use the GPUs, with the remedy; empty if programs can.

    The fabric manager must have exactly the driver's version, so a running one does not help a new driver.

    :param installed: the driver is already installed, and is not changed.
    """
    if not fabric.switches or (installed and fabric.manager):
        return []
    return [
        f"it has {fabric.switches} NVSwitches (PCI vendor 10de, class 0680). CUDA starts there only with NVIDIA's "
        "fabric manager, which is not supported yet. Remove it from gpu_nodes. Or install the driver and its fabric "
        f"manager yourself, start {FABRIC_MANAGER}, and set nvidia_driver_source to preinstalled."
    ]


def _manager_runs() -> bool:
    try:
        return properties_of(FABRIC_MANAGER, ("ActiveState",)).get("ActiveState") == "active"
    except CommandError:
        return False
