"""Rules about hosts and groups."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from .forms import is_node_name
from .site_model import CONTROLLER_PYTHON, Problem, Site, named, quoted

EXCLUSIVE = {
    (
        "control_plane",
        "workers",
    ): " For pods on control plane hosts, take it out of workers and set control_plane_schedulable: true.",
    ("controllers", "cluster"): "",
}
"""Pairs of groups that must not share a host -> a further sentence of the remedy."""

LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
"""One label of a DNS name in the form of Kubernetes (RFC 1123)."""

INSTANCE = "instance_i_"
"""Prefix of the groups in an inventory of AWS; each instance has one."""

_NAME = re.compile(rf"{LABEL}(\.{LABEL})*")
_NUMBERS = re.compile(r"[0-9.]+")


def control_plane_size(site: Site) -> Iterator[Problem]:
    """Refuse an empty control plane, and an even number of hosts.

    etcd needs a majority, so an even number of members tolerates no more failures than one member less.
    """
    hosts = site.groups.get("control_plane", ())
    if not hosts:
        remedy = "Put one or three hosts in it."
        yield Problem("group control_plane", "empty", "a cluster needs a control plane", remedy)
    elif len(hosts) % 2 == 0:
        yield Problem(
            "group control_plane",
            f"{len(hosts)} hosts ({named(sorted(hosts))})",
            "an even number tolerates no more failures than one host less",
            f"Use {len(hosts) - 1} or {len(hosts) + 1} hosts.",
        )


def exclusive_groups(site: Site) -> Iterator[Problem]:
    """Refuse a host in two groups whose roles cannot share a machine."""
    for (one, other), further in EXCLUSIVE.items():
        for host in sorted(set(site.groups.get(one, ())) & set(site.groups.get(other, ()))):
            yield Problem(
                f"host {host}",
                f"in the groups {one} and {other}",
                "the two exclude each other",
                f"Take it out of {one} or out of {other}.{further}",
            )


def one_mirror(site: Site) -> Iterator[Problem]:
    """Refuse more than one host that would serve the bundle."""
    hosts = site.groups.get("mirror", ())
    if len(hosts) > 1:
        yield Problem(
            "group mirror",
            f"{len(hosts)} hosts ({named(sorted(hosts))})",
            "a site has one mirror or none",
            "Keep one of them.",
        )


def one_controller(site: Site) -> Iterator[Problem]:
    """Refuse more than one host that would repair the site."""
    hosts = site.groups.get("controllers", ())
    if len(hosts) > 1:
        yield Problem(
            "group controllers",
            f"{len(hosts)} hosts ({named(sorted(hosts))})",
            "a site has one schedule or none",
            "Keep one of them. Until then no schedule is set up, and an existing one stays unchanged.",
        )


def duplicate_addresses(site: Site) -> Iterator[Problem]:
    """Refuse two names for one machine. Behind address translation, machines differ by their SSH ports."""
    by_address: dict[tuple[str, str], list[str]] = {}
    for host, address in site.addresses.items():
        by_address.setdefault((address, site.ports.get(host, "")), []).append(host)
    for (address, _), hosts in by_address.items():
        if len(hosts) > 1:
            yield Problem(
                f"address of the hosts {named(sorted(hosts))}",
                f'"{address}"',
                "each host needs its own address",
                "Correct ansible_host, or keep one name and put it into all the groups.",
            )


def lab_needs_root(site: Site) -> Iterator[Problem]:
    """Refuse a lab without root, which its containers and network need."""
    given = [setting.value for setting in site.values("lab_managed")]
    if site.groups.get("lab_hosts") and all(given) and not site.is_root:
        yield Problem(
            "group lab_hosts",
            f"{len(site.groups['lab_hosts'])} hosts, and the controller's user is not root",
            "the lab's containers, network and firewall rules need root",
            "Run it as root, or use an inventory of real hosts.",
        )


def addresses_are_some(site: Site) -> Iterator[Problem]:
    """Refuse texts that are neither an address nor a DNS name, such as an address with five numbers."""
    for host, text in site.addresses.items():
        try:
            ipaddress.ip_address(text)
        except ValueError:
            if text == host or (_NAME.fullmatch(text.lower()) and not _NUMBERS.fullmatch(text)):
                continue
            remedy = "Set ansible_host to the address of the host, for example 10.1.0.10, or to its DNS name."
            yield Problem(f"address of the host {host}", quoted(text), "neither an address nor a DNS name", remedy)


def node_names(site: Site) -> Iterator[Problem]:
    """Refuse names of hosts that Kubernetes would refuse late, after the installation."""
    renamed = {host for setting in site.values("kubernetes_node_name") for host in setting.hosts}
    for host in site.groups.get("cluster", ()):
        if host not in renamed and not is_node_name(host):
            remedy = (
                "Rename it (lower case letters, digits, hyphens, 63 characters), or set kubernetes_node_name for it."
            )
            yield Problem(f"host {host}", "in the group cluster", "the name of a node must be a DNS name", remedy)


def local_python(site: Site) -> Iterator[Problem]:
    """Refuse another Python than Ansible's on the controller, where its modules need the packages beside Ansible."""
    if site.controller_python not in (None, CONTROLLER_PYTHON):
        yield Problem(
            "host localhost",
            f"in the inventory with the Python {quoted(site.controller_python or 'of ansible.cfg')}",
            "tasks on the controller need the packages beside Ansible",
            "Remove localhost from the inventory. Or set its ansible_python_interpreter to "
            '"{{ ansible_playbook_python }}".',
        )


def one_instance_each(site: Site) -> Iterator[Problem]:
    """Refuse instances with the same name, which are one host in the inventory."""
    instances: dict[str, list[str]] = {}
    for group, hosts in sorted(site.groups.items()):
        for host in hosts if group.startswith(INSTANCE) else ():
            instances.setdefault(host, []).append(f"i-{group.removeprefix(INSTANCE)}")
    for host, several in instances.items():
        if len(several) > 1:
            yield Problem(
                f"host {host}",
                f"{len(several)} instances ({named(several)})",
                "their tag Name makes them one host, so only one would be configured",
                "Give each instance a different tag Name.",
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
    local_python,
    one_instance_each,
)
