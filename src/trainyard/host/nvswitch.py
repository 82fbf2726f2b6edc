"""NVSwitches of a host: where there are some, no program computes on a GPU until NVIDIA's fabric manager runs.

Apart from what a driver needs: the driver answers for each GPU without it, and so every other check passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..core.errors import CommandError
from .nvidia import devices
from .units import properties_of

CLASS = ("0x0680",)
"""PCI class of an NVSwitch, a bridge of no other kind."""

FABRIC_MANAGER = "nvidia-fabricmanager.service"


@dataclass(frozen=True)
class Fabric:
    """Observed properties of a host.

    :param switches: number of NVSwitches that it has not given to virtual machines.
    :param manager: whether the service runs that sets them up; false where there are none.
    """

    switches: int
    manager: bool


def observe(root: Path = Path("/")) -> Fabric:
    """Look at the host, by PCI."""
    switches = len(devices(CLASS, root))
    return Fabric(switches, manager=bool(switches) and _manager_runs())


def problems(fabric: Fabric, *, installed: bool) -> list[str]:
    """Why no program could compute on the GPUs, with the remedy; empty if one can.

    A fabric manager has to be of exactly the driver's version, so one that runs says nothing of a driver to come.

    :param installed: the driver is there already, and stays.
    """
    if not fabric.switches or (installed and fabric.manager):
        return []
    return [
        f"it has {fabric.switches} NVSwitches (PCI vendor 10de, class 0680). CUDA starts there only with NVIDIA's "
        "fabric manager, which is not supported yet. Take it out of gpu_nodes. Or install the driver and its fabric "
        f"manager yourself, start {FABRIC_MANAGER}, and set nvidia_driver_source to preinstalled."
    ]


def _manager_runs() -> bool:
    try:
        return properties_of(FABRIC_MANAGER, ("ActiveState",)).get("ActiveState") == "active"
    except CommandError:
        return False
