"""Filters that compare the hosts of a site: addresses, ports that others need, probes of them, folder of CNI files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trainyard.site import cni_folder, ports


class FilterModule:
    """The filters for Ansible."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "cni_dir": cni_folder.cni_dir,
            "cni_dir_of": cni_folder.cni_dir_of,
            "cni_reasons": cni_folder.cni_reasons,
            "needed_ports": ports.needed_ports,
            "port_probes": ports.port_probes,
            "probe_reasons": ports.probe_reasons,
            "probe_targets": ports.probe_targets,
            "site_addresses": ports.site_addresses,
        }
