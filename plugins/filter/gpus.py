"""Filters: what the verdict has to know of each host with GPUs, and what is wrong with one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trainyard.core.untrusted import mapping
from trainyard.gpu import offer


def gpu_hosts(hosts: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Node name to the fields of `verify.gpus.GpuNode`, from what inventory and driver say of each host.

    The values that nobody sets are those of the role `device_plugin`.

    :param hosts: those in `gpu_nodes` that are nodes.
    """
    found = {}
    for host in hosts:
        known = hostvars[host]
        gpus, shared = known.get("device_plugin_gpus"), known.get("device_plugin_sharing") == "time_slicing"
        info = offer.checked(mapping(known.get("ansible_facts")).get("gpus"))
        found[str(known.get("kubernetes_node_name") or host)] = {
            "gpus": None if gpus is None else int(gpus),
            "replicas": int(known.get("device_plugin_replicas", 2)) if shared else 1,
            # Without the package's own revision, which a driver does not know.
            "version": str(known.get("nvidia_driver_version") or "").partition("-")[0],
            "mig_strategy": str(known.get("device_plugin_mig_strategy") or "none"),
            "info": info,
        }
    return found


def gpu_fault(info: Mapping[str, Any], said: int | None = None) -> str:
    """Why not all GPUs of a host are well; empty where they are. `offer.fault` says more."""
    return offer.fault(offer.checked(info), None if said is None else int(said))


def gpu_units(info: Mapping[str, Any], said: int | None, mig_strategy: str) -> int | None:
    """What a host offers as `nvidia.com/gpu`, before several pods share one. `offer.units` says more."""
    return offer.units(offer.checked(info), None if said is None else int(said), mig_strategy)


def mig_fault(info: Mapping[str, Any], mig_strategy: str) -> str:
    """Why the device plugin does not start with the strategy `single`; else empty. `offer.mig_fault` says more."""
    return offer.mig_fault(offer.checked(info), mig_strategy)


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "gpu_hosts": gpu_hosts,
            "gpu_fault": gpu_fault,
            "gpu_units": gpu_units,
            "mig_fault": mig_fault,
        }
