"""Rules about hosts and groups."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from .model import Problem, Site, named, problem, quoted

EXCLUSIVE = (("control_plane", "workers"), ("controllers", "cluster"))
"""Pairs of groups that share no host."""

LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
"""One part of a DNS name, as Kubernetes takes it (RFC 1123)."""

INSTANCE = "instance_i_"
"""How the groups begin that an inventory of AWS makes of its instances, one for each."""

_NAME = re.compile(rf"{LABEL}(\.{LABEL})*")
_NUMBERS = re.compile(r"[0-9.]+")


def control_plane_size(site: Site) -> Iterator[Problem]:
    """etcd needs a majority: an even number of members survives no more failures than one less."""
    hosts = site.groups.get("control_plane", ())
    if not hosts:
        remedy = "Put one or three hosts in it."
        yield Problem("group control_plane", "empty", "a cluster needs a control plane", remedy)
    elif len(hosts) % 2 == 0:
        yield Problem(
            "group control_plane",
            f"{len(hosts)} hosts ({named(sorted(hosts))})",
            "an even number survives no more failures than one less",
            f"Use {len(hosts) - 1} or {len(hosts) + 1} hosts.",
        )


def exclusive_groups(site: Site) -> Iterator[Problem]:
    """A host in two groups whose roles cannot share a machine."""
    for one, other in EXCLUSIVE:
        for host in sorted(set(site.groups.get(one, ())) & set(site.groups.get(other, ()))):
            yield Problem(
                f"host {host}",
                f"in the groups {one} and {other}",
                "the two exclude each other",
                f"Take it out of {one} or out of {other}.",
            )


def one_mirror(site: Site) -> Iterator[Problem]:
    """More than one host that would serve the bundle."""
    hosts = site.groups.get("mirror", ())
    if len(hosts) > 1:
        yield Problem(
            "group mirror",
            f"{len(hosts)} hosts ({named(sorted(hosts))})",
            "a site has one mirror or none",
            "Keep one of them.",
        )


def one_controller(site: Site) -> Iterator[Problem]:
    """More than one host that would repair the same site."""
    hosts = site.groups.get("controllers", ())
    if len(hosts) > 1:
        yield Problem(
            "group controllers",
            f"{len(hosts)} hosts ({named(sorted(hosts))})",
            "a site has one schedule or none",
            "Keep one of them. Until then no schedule is set up, and one that is there goes on as it was.",
        )


def duplicate_addresses(site: Site) -> Iterator[Problem]:
    """Two names for one machine."""
    by_address: dict[str, list[str]] = {}
    for host, address in site.addresses.items():
        by_address.setdefault(address, []).append(host)
    for address, hosts in by_address.items():
        if len(hosts) > 1:
            yield Problem(
                f"address of the hosts {named(sorted(hosts))}",
                f'"{address}"',
                "hosts need addresses of their own",
                "Correct ansible_host, or keep one name and put it into all the groups.",
            )


def lab_needs_root(site: Site) -> Iterator[Problem]:
    """The lab's containers and network can be made by root only."""
    given = [setting.value for setting in site.values("lab_managed")]
    if site.groups.get("lab_hosts") and all(given) and not site.is_root:
        yield Problem(
            "group lab_hosts",
            f"{len(site.groups['lab_hosts'])} hosts, and the controller's user is not root",
            "the lab's containers, network and firewall rules need root",
            "Run it as root, or use an inventory of real hosts.",
        )


def addresses_are_some(site: Site) -> Iterator[Problem]:
    """Neither an address nor a DNS name, such as an address with five numbers."""
    for host, text in site.addresses.items():
        try:
            ipaddress.ip_address(text)
        except ValueError:
            if text == host or (_NAME.fullmatch(text.lower()) and not _NUMBERS.fullmatch(text)):
                continue
            remedy = "Set ansible_host to the address of the host, for example 10.1.0.10, or to its DNS name."
            yield Problem(f"address of the host {host}", quoted(text), "neither an address nor a DNS name", remedy)


def node_names(site: Site) -> Iterator[Problem]:
    """Nodes whose names Kubernetes refuses, after everything else is installed."""
    named_otherwise = {}
    for setting in site.values("kubernetes_node_name"):
        named_otherwise.update(dict.fromkeys(setting.hosts, setting))
    for host in site.groups.get("cluster", ()):
        own = named_otherwise.get(host)
        if own is None and not _NAME.fullmatch(host):
            remedy = "Rename it (small letters, digits, hyphens), or set kubernetes_node_name for it."
            yield Problem(
                f"host {host}", "in the group cluster", "its name is no DNS name, as a node's has to be", remedy
            )
        elif own is not None and not _NAME.fullmatch(str(own.value)):
            yield problem(own, "not a DNS name, as a node's has to be", "Use small letters, digits, hyphens.")


def one_instance_each(site: Site) -> Iterator[Problem]:
    """Instances with one name, of which the inventory has made one host."""
    instances: dict[str, list[str]] = {}
    for group, hosts in sorted(site.groups.items()):
        for host in hosts if group.startswith(INSTANCE) else ():
            instances.setdefault(host, []).append(f"i-{group.removeprefix(INSTANCE)}")
    for host, several in instances.items():
        if len(several) > 1:
            yield Problem(
                f"host {host}",
                f"{len(several)} instances ({named(several)})",
                "their tag Name makes them one host, and the others would never be set up",
                "Give each instance a Name of its own.",
            )


HOST_RULES = (
    control_plane_size,
    exclusive_groups,
    one_mirror,
    one_controller,
    duplicate_addresses,
    lab_needs_root,
    addresses_are_some,
    node_names,
    one_instance_each,
)
