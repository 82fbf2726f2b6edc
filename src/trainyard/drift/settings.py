"""Settings of reprovisioning from an inventory, with the defaults of the role."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from ..core.errors import TrainyardError
from ..site.inventory import Inventory
from ..site.variable_rules import SCALARS, typed

SITE = ("cluster", "mirror", "builders", "gpu_nodes")
"""Groups of the hosts that `site.yml` configures."""


@dataclass(frozen=True)
class Settings:
    """Variables of the role `reprovision` without their prefix; see roles/reprovision/meta/argument_specs.yml.

    :param timeout: seconds for one run.
    :param state_dir: folder for reports, history and approvals, on the machine of the run.
    """

    enabled: bool
    schedule: str
    mode: str
    timeout: int
    state_dir: str
    canary: str
    batch: str
    max_hosts: str
    max_items: int
    max_unreachable: str
    max_repeats: int
    approval_hours: float
    windows: Sequence[Mapping[str, Any]]
    hooks: Sequence[Mapping[str, Any]]
    metrics_file: str
    keep_reports_days: float
    keep_runs: int
    keep_mb: float


@dataclass(frozen=True)
class Site:
    """The parts of an inventory that a run needs.

    :param hosts: hosts that `site.yml` configures.
    :param secrets: values that no output may show.
    :param site_dir: folder that identifies the site; without one, the path of its inventory.
    :param nodes: host of the cluster -> name of its node.
    :param system_namespaces: namespaces whose pods must be healthy on a repaired node.
    :param pause_image: image of the pod that a repaired node has to start; every node has it.
    """

    inventory: tuple[str, ...]
    settings: Settings
    hosts: tuple[str, ...]
    workers: tuple[str, ...]
    kubeconfig: str
    secrets: frozenset[str]
    site_dir: str
    nodes: Mapping[str, str]
    system_namespaces: tuple[str, ...]
    pause_image: str


def settings_of(values: Mapping[str, Any]) -> Settings:
    """Return the settings from the role's variables.

    :param values: all variables, templated.
    :raises TrainyardError: a variable has the wrong type.
    """
    found: dict[str, Any] = {}
    for each in fields(Settings):
        name, value = f"reprovision_{each.name}", values[f"reprovision_{each.name}"]
        try:
            kind = str(each.type)
            found[each.name] = typed(value, kind) if kind in SCALARS else str(value) if kind == "str" else value
        except (TypeError, ValueError) as error:
            raise TrainyardError(
                f"{name} is {value!r}, not of the type {each.type}.", remedy=f"Set {name} to a value of this type."
            ) from error
    found["state_dir"] = os.path.expanduser(found["state_dir"])
    return Settings(**found)


def _node(read: Inventory, host: str) -> str:
    return str(read.values("kubernetes", ["kubernetes_node_name"], host)["kubernetes_node_name"])


def site_of(inventory: Sequence[str], *, runs: bool = True) -> Site:
    """Read an inventory.

    :param inventory: folders or files, as after `-i`.
    :param runs: whether the caller starts a run. Reading reports needs neither the vault's password nor the hooks,
        whose addresses may be in the vault.
    :raises TrainyardError: the inventory cannot be read, or lacks a value.
    """
    read = Inventory(inventory, locked=not runs)
    names = [f"reprovision_{each.name}" for each in fields(Settings) if runs or each.name != "hooks"]
    values = {"reprovision_hooks": []} | read.values("reprovision", names)
    kubeconfig = read.values("workloads", ["workloads_kubeconfig"])["workloads_kubeconfig"]
    namespaces = read.values("verify", ["verify_system_namespaces"])["verify_system_namespaces"]
    site_dir = read.values("reprovision", ["site_dir"], site_dir="")["site_dir"]
    return Site(
        inventory=tuple(inventory),
        settings=settings_of(values),
        hosts=tuple(read.hosts(*SITE)),
        workers=tuple(read.hosts("workers")),
        kubeconfig=os.path.expanduser(str(kubeconfig)),
        secrets=frozenset(read.secrets() if runs else ()),
        # The same value as in playbooks/_lock.yml, so that both use the same lock.
        site_dir=os.path.expanduser(str(site_dir)) or str(inventory[0]),
        nodes={host: _node(read, host) for host in read.hosts("cluster")},
        system_namespaces=tuple(namespaces),
        pause_image=str(read.values("containerd", ["containerd_sandbox_image"])["containerd_sandbox_image"]),
    )
