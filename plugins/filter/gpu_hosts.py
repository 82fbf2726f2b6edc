"""Filters about hosts with GPUs: their data for the verdict, and their faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trainyard.core.untrusted import mapping
from trainyard.gpu import offer


def gpu_hosts(hosts: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return node name -> fields of `verify.gpus.GpuNode`, from the inventory and the driver of each host.

    Unset values are the defaults of the role `device_plugin`.

    :param hosts: nodes in `gpu_nodes`.
    """
    found = {}
    for host in hosts:
        known = hostvars[host]
        gpus, shared = known.get("device_plugin_gpus"), known.get("device_plugin_sharing") == "time_slicing"
        info = offer.checked(mapping(known.get("ansible_facts")).get("gpus"))
        found[str(known.get("kubernetes_node_name") or host)] = {
            "gpus": None if gpus is None else int(gpus),
            "replicas": int(known.get("device_plugin_replicas", 2)) if shared else 1,
            # Without the revision of the package, which the driver does not report.
            "version": str(known.get("nvidia_driver_version") or "").partition("-")[0],
            "mig_strategy": str(known.get("device_plugin_mig_strategy") or "none"),
            "info": info,
        }
    return found


def gpu_fault(info: Mapping[str, Any], said: int | None = None) -> str:
    """Return why GPUs of a host are unhealthy; empty if all are healthy. See `offer.fault`."""
    return offer.fault(offer.checked(info), None if said is None else int(said))


def gpu_units(info: Mapping[str, Any], said: int | None, mig_strategy: str) -> int | None:
    """Return the number of `nvidia.com/gpu` of a host, before several pods share one. See `offer.units`."""
    return offer.units(offer.checked(info), None if said is None else int(said), mig_strategy)


def mig_fault(info: Mapping[str, Any], mig_strategy: str) -> str:
    """Return why the device plugin does not start with the strategy `single`; else empty. See `offer.mig_fault`."""
    return offer.mig_fault(offer.checked(info), mig_strategy)


class FilterModule:
    """The filters for Ansible."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "gpu_hosts": gpu_hosts,
            "gpu_fault": gpu_fault,
            "gpu_units": gpu_units,
            "mig_fault": mig_fault,
        }
