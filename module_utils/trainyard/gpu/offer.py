"""How many GPUs a host has to offer, and why its driver's answer is not enough for that.

One rule for the role that waits for them, for the verb that recovers them, and for the verdict.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


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


def fault(info: Mapping[str, Any], said: int | None) -> str:
    """Why the GPUs of the host are not all well, as `silence` says it; empty where they are.

    :param info: facts of `gpu_info`.
    :param said: number that the inventory says, or None.
    """
    if info["skew"]:
        return "has another version than the loaded module: run playbooks/gpu_driver.yml"
    if why := silence(info):
        return why
    wanted = expected(info, said) or 0
    if len(info["gpus"]) != wanted:
        return f"shows {len(info['gpus'])} of {wanted} GPUs"
    return "" if info["healthy"] else "reports a fault (`nvidia-smi -q` on the host)"
