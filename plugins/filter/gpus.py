"""Filter: what the verdict has to know of each host with GPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

FACTS = ("gpus", "driver", "library_version", "module_version", "skew", "healthy")
"""Of what `gpu_info` found."""


def gpu_hosts(hosts: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Node name to the fields of `verify.gpus.GpuNode`, from what inventory and driver say of each host.

    The values that nobody sets are those of the role `device_plugin`.

    :param hosts: those in `gpu_nodes` that are nodes.
    """
    found = {}
    for host in hosts:
        known = hostvars[host]
        gpus, shared = known.get("device_plugin_gpus"), known.get("device_plugin_sharing") == "time_slicing"
        info = (known.get("ansible_facts") or {}).get("gpus") or {}
        found[str(known.get("kubernetes_node_name") or host)] = {
            "gpus": None if gpus is None else int(gpus),
            "replicas": int(known.get("device_plugin_replicas", 2)) if shared else 1,
            "counted": known.get("device_plugin_mig_strategy") != "mixed",
            "info": {name: info[name] for name in FACTS if name in info},
        }
    return found


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"gpu_hosts": gpu_hosts}
