"""Firewalls of a host that close ports which other hosts of the site need: nftables and ufw.

The rules are read, and nothing is sent: `port_probe` finds firewalls between hosts. IPv6 and interfaces are not
compared.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from . import nftables
from .facts import text_of
from .preflight_checks import Reason, reason

UFW_ENABLED = re.compile(r"^\s*ENABLED\s*=\s*[\"']?yes", re.MULTILINE)
UFW_POLICY = re.compile(r"^\s*DEFAULT_INPUT_POLICY\s*=\s*[\"']?(DROP|REJECT)", re.MULTILINE)
UFW_RULE = re.compile(
    r"^### tuple ### (allow|limit)(?:_log(?:-all)?)? (\S+) (\S+) (\S+) \S+ (\S+)(?: \S+ \S+)? in(?:_\S+)?(?: |$)",
    re.MULTILINE,
)
"""ufw's own record of a rule: action, protocol, port, destination, source port, source, the names of applications
(`ufw allow OpenSSH`), direction (ufw, backend_iptables.py). A rule for one interface (`in_eth1`) counts: if it is not
that of the site, the probe of the ports finds it."""
FIREWALLD = "firewalld"
"""Table of firewalld, which replaces all other rules in it."""
FIREWALLD_RULE = (
    "firewall-cmd --permanent --add-rich-rule="
    "'rule family=ipv4 source address={source} port port={port} protocol={protocol} accept'"
)
HOST = 32
"""Prefix length of one address."""
WIDEST = 16
"""Shortest prefix of a network that a remedy opens; hosts that are further apart get networks of their own."""

Network = ipaddress.IPv4Network


@dataclass(frozen=True)
class Needed:
    """A port that other hosts need, with the networks from which they connect."""

    port: int
    protocol: str
    sources: tuple[Network, ...]


def needed(listed: Sequence[Mapping[str, Any]]) -> list[Needed]:
    """Return the ports with their IPv4 sources, from mappings of port, protocol and sources (texts)."""
    found = []
    for each in listed:
        sources = (ipaddress.ip_network(source, strict=False) for source in each["sources"])
        own = tuple(dict.fromkeys(network for network in sources if isinstance(network, Network)))
        found.append(Needed(int(each["port"]), str(each["protocol"]), own))
    return [each for each in found if each.sources]


def problems(ports: Sequence[Needed], root: Path = Path("/")) -> list[Reason]:
    """Return a reason for each firewall that drops connections from one of the sources."""
    packets = [nftables.Packet(source, None, each.protocol, each.port) for each in ports for source in each.sources]
    found = []
    for (family, table, chain), closed in nftables.dropping(nftables.ruleset(), "input", packets):
        # The site's own table is written again before the host needs its ports.
        if (family, table) == nftables.TABLE:
            continue
        rule = f"nft insert rule {family} {table} {chain} ip saddr {{source}} {{protocol}} dport {{port}} accept"
        end = "write the rules into the configuration of that firewall, too"
        if table == FIREWALLD:
            rule, end = FIREWALLD_RULE, "run `firewall-cmd --reload`"
        found.append(_reason(f"the chain {chain} of the nftables table {family} {table}", closed, rule, end))
    if closed := _closed_by_ufw(packets, root):
        rule = "ufw allow proto {protocol} from {source} to any port {port}"
        found.append(_reason("ufw", closed, rule, "compare `ufw status`"))
    return found


def beside(root: Path = Path("/")) -> list[Reason]:
    """Return a reason for each firewall of others that drops packets, for a host that gets the site's own.

    A packet passes only if no table drops it, so a port would need a rule in both.
    """
    names = [
        f"the chain {chain} of the nftables table {family} {table}" for family, table, chain in nftables.policies()
    ]
    names += ["ufw"] if UFW_ENABLED.search(text_of(root / "etc/ufw/ufw.conf")) else []
    return [reason("firewall_beside", where=name) for name in names]


def _reason(where: str, closed: Sequence[nftables.Packet], rule: str, end: str) -> Reason:
    commands, names = [], []
    for (port, protocol), packets in groupby(closed, key=lambda packet: (packet.port, packet.protocol)):
        names.append(f"{port}/{protocol}")
        sources = _together([packet.source for packet in packets if packet.source])
        commands += [rule.format(source=source, protocol=protocol, port=port) for source in sources]
    return reason("firewall", where=where, ports=", ".join(names), commands="; ".join(commands), end=end)


def _together(sources: Sequence[Network]) -> list[Network]:
    """Return one network for all hosts that are near each other, and the other networks as they are."""
    groups: dict[Network, Network] = {}
    others = [source for source in sources if source.prefixlen != HOST]
    for host in (source for source in sources if source.prefixlen == HOST):
        around = host.supernet(new_prefix=WIDEST)
        network = groups.get(around, host)
        while not host.subnet_of(network):
            network = network.supernet()
        groups[around] = network
    return [*groups.values(), *others]


def _closed_by_ufw(packets: Sequence[nftables.Packet], root: Path) -> list[nftables.Packet]:
    """Return the packets that no rule of ufw allows; none if ufw is off."""
    if not UFW_ENABLED.search(text_of(root / "etc/ufw/ufw.conf")):
        return []
    if not UFW_POLICY.search(text_of(root / "etc/default/ufw")):
        return []
    rules = UFW_RULE.findall(text_of(root / "etc/ufw/user.rules"))
    return [packet for packet in packets if not any(_allows(rule, packet) for rule in rules)]


def _allows(rule: tuple[str, ...], packet: nftables.Packet) -> bool:
    _, protocol, ports, _, source = rule
    try:
        from_here = ipaddress.ip_network(source, strict=False)
    except ValueError:
        return False
    inside = isinstance(from_here, Network) and packet.source is not None and packet.source.subnet_of(from_here)
    return inside and protocol in ("any", packet.protocol) and any(packet.port in each for each in _ports(ports))


def _ports(text: str) -> Iterator[range]:
    """Yield the ports of a rule of ufw: `any`, a number, a range `1:9`, or several with commas."""
    for each in text.split(","):
        first, _, last = each.partition(":")
        if each == "any":
            yield range(65536)
        elif first.isdecimal() and (last or first).isdecimal():
            yield range(int(first), int(last or first) + 1)
