"""The labs for drift: their hosts and settings, as changes of the lab's inventory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import inputs
import yaml
from sides import SUBNET

DISK = "/var/lib/trainyard-drift"
"""A small disk of a node, with a limit in the inventory."""
SETTINGS = {
    # Each group affects several hosts at once.
    "reprovision_max_hosts": "100%",
    "base_disk_free_min_mib": {"/var/lib": 5120, DISK: 32},
}
MACHINE = "machine1"


@dataclass(frozen=True)
class Shape:
    """Changes of the lab's inventory.

    :param hosts: group -> its hosts with their variables, for groups that differ from the lab's.
    :param joining: groups of `hosts` that are added when the site is running, so that its pods are elsewhere.
    """

    hosts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    joining: Sequence[str] = ()


SHAPES = {
    "lab": Shape({"builders": {"worker2": None}}),
    # For drift that needs several members of etcd. No training, which would only take time.
    "three": Shape(
        {
            "control_plane": {f"cp{number}": {"ansible_host": f"{SUBNET}{9 + number}"} for number in (1, 2, 3)},
            "workers": {"worker1": {"ansible_host": f"{SUBNET}21"}},
        },
        {"workloads_trainings": []},
    ),
    # For drift that needs a separate kernel. The machine is emulated, so it has the limits of a slow host.
    "machine": Shape(
        {
            "workers": {
                MACHINE: {
                    "ansible_host": f"{SUBNET}31",
                    "lab_kind": "machine",
                    "base_cpu_flags": [],
                    "containerd_restrict_oom_score_adj": False,
                    "base_command_timeout": 600,
                    "base_packages_timeout": 1200,
                    "base_ready_timeout": 180,
                    "containerd_ready_timeout": 180,
                    "kubernetes_kubeadm_timeout": 900,
                    "kubernetes_api_timeout": 600,
                    "kubernetes_kubeadm_timeouts": {
                        "kubeletHealthCheck": "10m0s", "discovery": "10m0s", "kubernetesAPICall": "5m0s",
                        "tlsBootstrap": "10m0s",
                    },
                }
            }
        },
        {
            # The containers share a folder of this machine, which another kernel cannot access.
            "storage_backend": "", "workloads_trainings": [],
            "network_timeout": 900, "lab_machine_boot_timeout": 900,
            # On an emulated machine, unpacking the images of the controllers takes eight minutes.
            "control_plane_schedulable": True,
        },
        joining=["workers"],
    ),
}  # fmt: skip
"""The labs by name: each kind of drift needs one of them."""


def shape(inventory: Path, wanted: Shape, *, joined: bool = True) -> None:
    """Change a copied inventory to a lab of this shape, with the bench's settings.

    :param joined: whether to include the groups that are added later.
    """
    text = yaml.safe_dump({**SETTINGS, **wanted.settings}, sort_keys=False)
    # The last file by name takes precedence.
    (inventory / "group_vars" / "all" / "zz_drift.yml").write_text(f"---\n{text}", encoding="utf-8")
    path = inventory / "hosts.yml"
    listed = yaml.safe_load(path.read_text(encoding="utf-8"))
    for group, hosts in wanted.hosts.items():
        listed["all"]["children"][group] = {"hosts": dict(hosts) if joined or group not in wanted.joining else {}}
    path.write_text(yaml.safe_dump(listed, sort_keys=False), encoding="utf-8")


def hosts_of(inventory: Path) -> list[str]:
    """Return the hosts of the inventory's nodes, which are the lab's containers."""
    return sorted(hostvars(inventory))


def hostvars(inventory: Path) -> dict[str, Any]:
    """Return host -> its variables."""
    told = subprocess.run(
        [str(Path(sys.executable).with_name("ansible-inventory")), "-i", str(inventory), "--list"],
        capture_output=True, text=True, check=True, timeout=120, cwd=inputs.ROOT,
    )  # fmt: skip
    return dict(json.loads(told.stdout)["_meta"]["hostvars"])
