"""Filters: the addresses of a site's hosts, the ports that other hosts need, and probes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trainyard.site import ports


class FilterModule:
    """The filters for Ansible."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "needed_ports": ports.needed_ports,
            "port_probes": ports.port_probes,
            "probe_reasons": ports.probe_reasons,
            "probe_targets": ports.probe_targets,
            "site_addresses": ports.site_addresses,
        }
