"""How many GPUs a host has to offer, and why its driver's answer is not enough for that.

One rule for the role that waits for them, for the verb that recovers them, and for the verdict.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.untrusted import items, line, mapping, whole

MOST_GPUS = 1_024
"""GPUs of a host that are looked at; machines of today have 16."""


def checked(info: Any) -> dict[str, Any]:
    """The facts of `gpu_info` as a host may have forged them, each of the type that the module returns.

    :return: empty where the host was not asked.
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
    """Why no GPU of the host can be used at all, as the end of a sentence that begins with "the driver of w1";
    empty where the driver shows one, and where its library does not fit the loaded module, which is a fault of its own.

    :param info: facts of `gpu_info`.
    """
    if info["skew"] or info["gpus"]:
        return ""
    if info["source"] == "none":
        return f"does not answer ({info.get('error') or 'nothing says why'})"
    return "shows no GPU"


def expected(info: Mapping[str, Any], said: int | None) -> int | None:
    """The host's GPUs; None where nobody knows.

    :param info: facts of `gpu_info`; empty where the host was not asked.
    :param said: number that the inventory says. Without one it is that of the PCI bus, where GPUs are seen on it, and
        otherwise that of the driver: a GPU which the driver has lost over a restart is still on the bus.
    """
    if said is not None:
        return said
    if not info or info["skew"] or silence(info):
        return info.get("on_bus")
    return max(info.get("on_bus") or 0, len(info["gpus"]))


def units(info: Mapping[str, Any], said: int | None, mig_strategy: str) -> int | None:
    """What the host offers as `nvidia.com/gpu`, before several pods share one; None where nobody knows.

    MIG divides a GPU into instances. `none` offers the GPU in spite of that, `single` each instance as if it were a
    GPU, and `mixed` each instance by the name of its profile, so that only undivided GPUs are left.

    :param info: facts of `gpu_info`; empty where the host was not asked.
    :param said: number of GPUs that the inventory says, divided or not. Without one those count that the driver shows,
        and those on the bus where it shows none.
    """
    shown = info.get("gpus") or []
    if mig_strategy == "none" or not shown:
        known = said if said is not None else len(shown) or expected(info, None)
        return known if mig_strategy == "none" else None
    if any(gpu.get("lost") for gpu in shown):
        # Nobody can ask it any more whether it was divided.
        return None
    parts = [_parts(gpu, mig_strategy) for gpu in shown]
    return sum(parts) + max(0, (said or 0) - len(shown))


def _parts(gpu: Mapping[str, Any], mig_strategy: str) -> int:
    if gpu.get("mig") != "enabled":
        return 1
    return int(gpu["mig_devices"]) if mig_strategy == "single" else 0


def mig_fault(info: Mapping[str, Any], mig_strategy: str) -> str:
    """Why the device plugin does not start with `single`, as its `assertAllMigDevicesAreValid` has it; else empty."""
    shown = info.get("gpus") or []
    divided = [gpu for gpu in shown if gpu.get("mig") == "enabled"]
    if mig_strategy != "single" or not divided:
        return ""
    if any(not gpu["mig_devices"] for gpu in divided):
        return "has a GPU in MIG mode without an instance (`nvidia-smi mig -cgi` makes them)"
    return "has GPUs in MIG mode and others; a host with the strategy single has one kind" if divided != shown else ""


def fault(info: Mapping[str, Any], said: int | None) -> str:
    """Why the GPUs of the host are not all well, as `silence` says it; empty where they are.

    :param info: facts of `gpu_info`.
    :param said: number that the inventory says, or None.
    """
    if not info:
        return "was not asked"
    if info["skew"]:
        return "has another version than the loaded module: run playbooks/gpu_driver.yml"
    if why := silence(info):
        return why
    wanted = expected(info, said) or 0
    if len(info["gpus"]) != wanted:
        return f"shows {len(info['gpus'])} of {wanted} GPUs"
    return "" if info["healthy"] else "reports a fault (`nvidia-smi -q` on the host)"
