"""The number of GPUs that a host should offer, and the reasons why its driver shows fewer.

The role that waits for GPUs, the verb that recovers them and the verdict share these rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.untrusted import items, line, mapping, whole

MOST_GPUS = 1_024
"""Maximum number of GPUs of a host that are read; current machines have up to 16."""


def checked(info: Any) -> dict[str, Any]:
    """Validate facts of `gpu_info`, which a host may have forged, so that each has its documented type.

    :return: empty if the host was not queried.
    """
    said = mapping(info)
    if not said:
        return {}
    texts = {key: line(said.get(key), 200) or None for key in ("error", "driver", "library_version", "module_version")}
    return {
        **texts,
        "source": line(said.get("source"), 200) or "none",
        "pending": line(said.get("pending"), 400),
        "on_bus": whole(said.get("on_bus"), 0, MOST_GPUS),
        "skew": said.get("skew") is True,
        "healthy": said.get("healthy") is True,
        "gpus": [_checked_gpu(mapping(each)) for each in items(said.get("gpus"))[:MOST_GPUS]],
    }


def _checked_gpu(said: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "mig": line(said.get("mig"), 40) or None,
        "mig_devices": whole(said.get("mig_devices"), 0, MOST_GPUS) or 0,
        "lost": said.get("lost") is True,
    }


def silence(info: Mapping[str, Any]) -> str:
    """Return why no GPU of the host can be used, as the end of a sentence that begins with "the driver of w1".

    Empty if the driver shows a GPU. Also empty if its library does not match the loaded module, a separate fault.

    :param info: facts of `gpu_info`.
    """
    if info["skew"] or info["gpus"]:
        return ""
    if info["source"] == "none":
        return f"does not answer ({info.get('error') or 'reason unknown'})"
    return "shows no GPU"


def expected(info: Mapping[str, Any], said: int | None) -> int | None:
    """Return the expected number of GPUs of the host; None if unknown.

    :param info: facts of `gpu_info`; empty if the host was not queried.
    :param said: number set in the inventory, or None. Without it, the larger of the numbers on the PCI bus and in the
        driver counts: a GPU that the driver lost at a restart is still on the bus.
    """
    if said is not None:
        return said
    if not info or info["skew"] or silence(info):
        return info.get("on_bus")
    return max(info.get("on_bus") or 0, len(info["gpus"]))


def units(info: Mapping[str, Any], said: int | None, mig_strategy: str) -> int | None:
    """Return how many `nvidia.com/gpu` the host offers, before time slicing; None if unknown.

    MIG divides a GPU into instances. `none` offers whole GPUs regardless. `single` offers each instance as a GPU.
    `mixed` offers each instance by the name of its profile, so that only undivided GPUs count here.

    :param info: facts of `gpu_info`; empty if the host was not queried.
    :param said: number of GPUs set in the inventory, divided or not, or None. Without it, the GPUs that the driver
        shows count, or those on the bus if it shows none.
    """
    shown = info.get("gpus") or []
    if mig_strategy == "none" or not shown:
        known = said if said is not None else len(shown) or expected(info, None)
        return known if mig_strategy == "none" else None
    if any(gpu.get("lost") for gpu in shown):
        # A lost GPU no longer reports whether it was divided.
        return None
    parts = [_parts(gpu, mig_strategy) for gpu in shown]
    return sum(parts) + max(0, (said or 0) - len(shown))


def _parts(gpu: Mapping[str, Any], mig_strategy: str) -> int:
    if gpu.get("mig") != "enabled":
        return 1
    return int(gpu["mig_devices"]) if mig_strategy == "single" else 0


def mig_fault(info: Mapping[str, Any], mig_strategy: str) -> str:
    """Return why the device plugin refuses to start with `single` (its `assertAllMigDevicesAreValid`); else empty."""
    shown = info.get("gpus") or []
    divided = [gpu for gpu in shown if gpu.get("mig") == "enabled"]
    if mig_strategy != "single" or not divided:
        return ""
    if any(not gpu["mig_devices"] for gpu in divided):
        return "has a GPU in MIG mode without an instance (`nvidia-smi mig -cgi` creates instances)"
    return "has GPUs with and without MIG mode; the strategy single allows only one kind" if divided != shown else ""


def fault(info: Mapping[str, Any], said: int | None) -> str:
    """Return why not all GPUs of the host are healthy, in the form of `silence`; empty if they are.

    :param info: facts of `gpu_info`.
    :param said: number set in the inventory, or None.
    """
    if not info:
        return "was not queried"
    if info["skew"]:
        return "has another version than the loaded kernel module; run playbooks/gpu_driver.yml"
    if why := silence(info):
        return why
    wanted = expected(info, said) or 0
    if len(info["gpus"]) != wanted:
        return f"shows {len(info['gpus'])} of {wanted} GPUs"
    return "" if info["healthy"] else "reports a fault (`nvidia-smi -q` on the host)"
