"""Rules about networks and addresses."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from .site_model import Problem, Setting, Site, named, problem, quoted

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

NETWORK_VARIABLES = ("kubernetes_pod_cidr", "kubernetes_service_cidr", "lab_subnet")
"""Networks that must not overlap."""

CLUSTER_NETWORKS = NETWORK_VARIABLES[:2]
"""Networks inside the cluster. No machine may have an address in them."""

ADMITTED = ("cluster", "mirror", "builders", "controllers")
"""Groups whose hosts the role `firewall` admits by their addresses."""
CNI_FOLDER = re.compile(r"/[\w./-]+")
"""As `facts.CNI_SETTING` reads it on a host."""


@dataclass(frozen=True)
class _Range:
    setting: Setting
    network: Network


def _ranges(site: Site, names: tuple[str, ...]) -> list[_Range]:
    """Return the valid networks. The rule of forms reports the others."""
    found = []
    for setting in _networks(site, names):
        try:
            found.append(_Range(setting, ipaddress.ip_network(str(setting.value))))
        except ValueError:
            continue
    return found


def _networks(site: Site, names: tuple[str, ...]) -> Iterator[Setting]:
    """Yield the values of network variables, without the lab's network if the site has no lab."""
    for name in names:
        if name != "lab_subnet" or site.groups.get("lab_hosts"):
            yield from site.values(name)


def _example(network: Network) -> str:
    """Return an example address for a remedy: the tenth of the network, or the last of a small network."""
    return str(network[min(10, network.num_addresses - 1)])


def _address(text: str) -> Address | None:
    """Return the address, or None for a DNS name."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _inside(address: Address, network: Network) -> bool:
    return address.version == network.version and address in network


def one_value(site: Site) -> Iterator[Problem]:
    """Refuse a network of the cluster that differs between hosts."""
    for name in CLUSTER_NETWORKS:
        settings = list(site.values(name))
        said = {host for setting in site.settings if setting.name == name for host in setting.hosts}
        if settings and name in site.defaults and set(site.groups.get("cluster", ())) - said:
            # Hosts without the variable have the role's default.
            settings.insert(0, Setting(name, site.defaults[name]))
        for setting in settings[1:]:
            if setting.value != settings[0].value:
                fault = f'other hosts have "{settings[0].value}"'
                yield problem(setting, fault, "Set it once, for all hosts (group_vars/all).")


def overlapping_networks(site: Site) -> Iterator[Problem]:
    """Refuse overlapping pod, service and lab networks."""
    for one, other in combinations(_ranges(site, NETWORK_VARIABLES), 2):
        if one.setting.name == other.setting.name or one.network.version != other.network.version:
            continue
        if one.network.overlaps(other.network):
            # Report the value that the inventory sets, not the role's default.
            culprit, rest = (other, one) if other.setting.hosts else (one, other)
            yield problem(
                culprit.setting,
                f'overlaps {rest.setting.name} "{rest.setting.value}"',
                "Give each a separate network.",
            )


def hosts_in_cluster_networks(site: Site) -> Iterator[Problem]:
    """Refuse an address of a machine or of the control plane's endpoint inside the pod or service network."""
    ranges = _ranges(site, CLUSTER_NETWORKS)
    machines = [(f"host {host}", "ansible_host", text) for host, text in site.addresses.items()]
    for setting in site.values("kubernetes_node_ip"):
        machines += [(f"variable kubernetes_node_ip of {host}", "it", str(setting.value)) for host in setting.hosts]
    for setting in site.values("control_plane_endpoint"):
        host = _endpoint(str(setting.value))
        if host:
            machines.append(("variable control_plane_endpoint", "the endpoint", host[0]))
    for subject, what, text in machines:
        address = _address(text)
        for taken in ranges if address else ():
            if address and _inside(address, taken.network):
                yield Problem(
                    subject,
                    f'"{text}"',
                    f'inside {taken.setting.name} "{taken.setting.value}"',
                    f"Change {taken.setting.name} to a network that no machine uses, or correct {what}.",
                )


def node_addresses_once(site: Site) -> Iterator[Problem]:
    """Refuse one address for two nodes."""
    for setting in site.values("kubernetes_node_ip"):
        if len(setting.hosts) > 1:
            yield problem(setting, "each node needs its own address", "Set it for each host, not for a group.")


def _endpoint(text: str) -> tuple[str, int] | None:
    """Return host and port of "host:port" or "[IPv6]:port"; None for other texts."""
    host, separator, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not separator or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        return None
    return host, int(port)


def dns_address(site: Site) -> Iterator[Problem]:
    """Refuse an address of the cluster's DNS that is outside the service network or belongs to the API server."""
    for services in _ranges(site, ("kubernetes_service_cidr",)):
        for setting in site.values("kubernetes_dns_ip"):
            address = _address(str(setting.value))
            network = services.network
            if address is None:
                # The rule of forms reports it.
                continue
            if not _inside(address, network):
                yield problem(
                    setting,
                    f'outside kubernetes_service_cidr "{network}"',
                    f"Use an address of that network, for example {_example(network)}.",
                )
            elif address in (network[0], network[1]):
                yield problem(
                    setting,
                    f"the first addresses of {network} belong to the network and to the API server",
                    f"Use a later one, for example {_example(network)}.",
                )


def lab_addresses(site: Site) -> Iterator[Problem]:
    """Refuse a lab node whose address is not free in the lab's network."""
    for lab in _ranges(site, ("lab_subnet",)):
        for host in site.groups.get("lab_hosts", ()):
            text = site.addresses.get(host, "")
            address = _address(text)
            if address is None or not _inside(address, lab.network):
                yield Problem(
                    f"host {host}",
                    f'"{text}"',
                    f'not an address of lab_subnet "{lab.network}"',
                    f"Set ansible_host to a free address of {lab.network}.",
                )
            elif address in (lab.network[0], lab.network[1], lab.network[-1]):
                yield Problem(
                    f"host {host}",
                    f'"{text}"',
                    f'used by the network itself or its gateway in lab_subnet "{lab.network}"',
                    "Set ansible_host to another address of that network.",
                )


def firewall_admits(site: Site) -> Iterator[Problem]:
    """Refuse a firewall that would close SSH, or drop connections of a host whose address it does not know."""
    enabled = [setting for setting in site.values("firewall_enabled") if setting.value is True]
    if not enabled:
        return
    admins = {host for setting in site.values("firewall_admin_networks") if setting.value for host in setting.hosts}
    for setting in enabled:
        if closed := [host for host in setting.hosts if host not in admins]:
            fault = f"firewall_admin_networks of {named(closed)} is empty, so no SSH connection would be admitted"
            yield problem(setting, fault, "Set it to the networks from which the controller connects, as 10.1.0.0/24.")
    known = {host for setting in site.values("kubernetes_node_ip") for host in setting.hosts}
    known |= {host for host, text in site.addresses.items() if _address(text)}
    hosts = dict.fromkeys(host for group in ADMITTED for host in site.groups.get(group, ()))
    for host in hosts:
        if host not in known:
            yield Problem(
                f"host {host}",
                quoted(site.addresses.get(host, "")),
                "firewall_enabled is true, and the firewalls of the other hosts need its address",
                "Set ansible_host, or kubernetes_node_ip of a node, to its address.",
            )


def cni_folder(site: Site) -> Iterator[Problem]:
    """Refuse a folder with characters that the settings of containerd are not searched for."""
    for setting in site.values("network_cni_dir"):
        if not CNI_FOLDER.fullmatch(str(setting.value)):
            remedy = "Use letters, digits, dots, hyphens and slashes, as in /etc/cni/trainyard.d."
            yield problem(setting, "not a folder of CNI files", remedy)


NETWORK_RULES = (
    cni_folder,
    firewall_admits,
    one_value,
    overlapping_networks,
    hosts_in_cluster_networks,
    node_addresses_once,
    dns_address,
    lab_addresses,
)
