"""Rules about the source of a site's packages and images."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from .site_model import Problem, Site, named, problem

SUPPLIES = ("vendors", "mirror")

PLACEHOLDER_NETWORKS = tuple(
    ipaddress.ip_network(text) for text in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")
)
"""Addresses reserved for documentation (RFC 5737)."""

PLACEHOLDER_NAMES = ("example.org", "example.com", "example.net")
"""Domains reserved for documentation (RFC 2606)."""


def supply_is_said(site: Site) -> Iterator[Problem]:
    """Refuse a missing or invalid supply, and one that differs between hosts."""
    settings = [setting for setting in site.settings if setting.name == "supply"]
    if not settings:
        remedy = "Set it in group_vars/all/supply.yml: vendors, or mirror for a site with its own mirror."
        yield Problem("variable supply", "missing", "it selects the source of packages and images", remedy)
    for setting in settings:
        if setting.value not in SUPPLIES:
            yield problem(setting, "not one of the allowed values", f"Use one of: {', '.join(SUPPLIES)}.")
        elif setting.value != settings[0].value:
            yield problem(
                setting, f'other hosts have "{settings[0].value}"', "Set it once, for all hosts (group_vars/all)."
            )


def supply_fits_groups(site: Site) -> Iterator[Problem]:
    """Refuse the supply mirror without a mirror, and a mirror that no host would use."""
    mirrors = site.groups.get("mirror", ())
    for setting in site.values("supply"):
        if setting.value == "mirror" and not mirrors:
            remedy = "Put one host into the group mirror, or use vendors."
            yield problem(setting, "the group mirror has no host", remedy)
        elif setting.value == "vendors" and mirrors:
            remedy = "Use mirror, or take the host out of the group mirror."
            yield problem(setting, f"the group mirror has the host {mirrors[0]}, which no host would use", remedy)


def placeholders(site: Site) -> Iterator[Problem]:
    """Refuse addresses and names that are still those of the shipped inventories."""
    for host, text in site.addresses.items():
        if _is_placeholder(text):
            remedy = "Set ansible_host to the address of your host."
            yield Problem(f"address of the host {host}", f'"{text}"', "an address for documentation", remedy)
    for setting in site.values("workloads_registry"):
        if _is_placeholder(str(setting.value).partition("/")[0].partition(":")[0]):
            remedy = "Set it to a registry and a path in it, for the training's images."
            yield problem(setting, "a name for documentation", remedy)
    for setting in site.values("control_plane_endpoint"):
        if _is_placeholder(str(setting.value).rpartition(":")[0]):
            remedy = "Set it to the name or address, and the port, at which your nodes reach the API."
            yield problem(setting, "a name for documentation", remedy)


def _is_placeholder(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return any(text == name or text.endswith(f".{name}") for name in PLACEHOLDER_NAMES)
    return any(address in network for network in PLACEHOLDER_NETWORKS)


def plain_registries(site: Site) -> Iterator[Problem]:
    """Refuse image mirrors without TLS. A tag does not verify content, so others on the network could replace it."""
    for setting in site.values("containerd_registry_mirrors"):
        for registry, mirror in setting.value.items() if isinstance(setting.value, Mapping) else ():
            if urlsplit(str(mirror)).scheme != "https":
                yield problem(setting, "not an https URL", "Serve it over TLS.", key=f".{registry}", value=mirror)


def builder_fits(site: Site) -> Iterator[Problem]:
    """Refuse a builder outside the group builders. Refuse any for a mirror, whose artefacts the controller builds."""
    builders = site.groups.get("builders", ())
    for setting in site.values("bundle_builder"):
        if setting.value and setting.value not in builders:
            there = f"It has: {named(sorted(builders))}." if builders else "It is empty."
            yield problem(setting, "not a host of the group builders", f"Put the host into builders. {there}")
        elif setting.value and any(supply.value == "mirror" for supply in site.values("supply")):
            remedy = "Remove bundle_builder, and run as a user with sudo on the controller."
            yield problem(setting, "the controller builds and signs the files of a mirror", remedy)


SUPPLY_RULES = (supply_is_said, supply_fits_groups, placeholders, plain_registries, builder_fits)
