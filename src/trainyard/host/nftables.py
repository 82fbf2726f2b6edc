"""Read the nftables rules of a host: which chains at a hook of the kernel drop packets that the cluster needs.

Rules of iptables-nft and ufw have conditions that the JSON output does not describe; their table is left out.
"""

from __future__ import annotations

import ipaddress
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.command import run
from ..core.errors import CommandError
from ..core.untrusted import at, items, line, mapping, whole

NFT = ("nft", "--json", "list", "ruleset")
TIMEOUT = 20.0
OF_IPTABLES = (("ip", "filter"), ("ip6", "filter"))
"""Tables of iptables-nft."""
DROPS = ("drop", "reject")
LOOPBACK = "lo"
TABLE = ("inet", "trainyard")
"""Family and name of the table of the role `firewall`."""

Place = tuple[str, str, str]
"""Family, table and chain."""
Rules = Mapping[Place, Sequence[Sequence[Any]]]
"""The expressions of each rule of a chain."""


@dataclass(frozen=True)
class Packet:
    """Packets that must pass, with the known properties. A condition on another property may let only some pass.

    :param source: network from which all of them come; `destination` likewise.
    :param protocol: tcp or udp; `port` is the destination's.
    """

    source: ipaddress.IPv4Network | None = None
    destination: ipaddress.IPv4Network | None = None
    protocol: str = ""
    port: int = 0


def output(argv: Sequence[str]) -> str:
    """Return a program's output; empty if it is not installed, or if the kernel has no such tables."""
    if shutil.which(argv[0]) is None:
        return ""
    try:
        return run(argv, timeout=TIMEOUT).stdout
    except CommandError:
        return ""


def ruleset() -> Sequence[Any]:
    """Return the list in the output of `nft --json list ruleset` (libnftables-json(5)); empty without nft."""
    try:
        return items(mapping(json.loads(output(NFT) or "{}")).get("nftables"))
    except (ValueError, RecursionError):
        return []


def dropping(found: Sequence[Any], hook: str, packets: Sequence[Packet]) -> Iterator[tuple[Place, list[Packet]]]:
    """Yield each chain at a hook that drops some of the packets, with those packets.

    A packet passes if a rule accepts it, also in a chain to which a rule jumps.

    :param found: the list of `ruleset`.
    :param hook: `input` or `forward`.
    """
    rules = _rules(found)
    for place in _closed(found, rules, hook):
        if place[:2] in OF_IPTABLES or place[0] == "ip6":
            continue
        dropped = [packet for packet in packets if not _accepts(rules, place, packet, set())]
        if dropped:
            yield place, dropped


def policies(found: Sequence[Any] | None = None) -> list[Place]:
    """Return the chains at the hook `input` that drop packets, except those of the site's own table.

    :param found: the list of `ruleset`; by default that of the host.
    """
    found = ruleset() if found is None else found
    return [place for place in _closed(found, _rules(found), "input") if place[:2] != TABLE]


def _rules(found: Sequence[Any]) -> Rules:
    rules: dict[Place, list[Sequence[Any]]] = {}
    for rule in (mapping(at(each, "rule")) for each in found):
        rules.setdefault(_place(rule, "chain"), []).append(items(rule.get("expr")))
    return rules


def _closed(found: Sequence[Any], rules: Rules, hook: str) -> Iterator[Place]:
    """Yield the chains at a hook that drop by their policy, or by a last rule without conditions."""
    for chain in (mapping(at(each, "chain")) for each in found):
        place = _place(chain, "name")
        if chain.get("hook") == hook and (chain.get("policy") == "drop" or _drops_all((rules.get(place) or [[]])[-1])):
            yield place


def _drops_all(expressions: Sequence[Any]) -> bool:
    return _is_unconditional(expressions) and bool(set(_verdicts(expressions)) & set(DROPS))


def _place(found: Mapping[str, Any], name: str) -> Place:
    return line(found.get("family"), 20), line(found.get("table"), 80), line(found.get(name), 80)


def _verdicts(expressions: Sequence[Any]) -> list[str]:
    return [key for each in expressions for key in mapping(each)]


def _is_unconditional(expressions: Sequence[Any]) -> bool:
    return "match" not in _verdicts(expressions)


def _accepts(rules: Rules, chain: Place, packet: Packet, seen: set[Place]) -> bool:
    """Return whether a chain accepts all these packets.

    :param seen: chains that did not accept them; each chain is read once, however many rules jump to it.
    """
    if chain in seen:
        return False
    seen.add(chain)
    for rule in rules.get(chain, ()):
        conditions = [mapping(at(each, "match")) for each in rule if "match" in mapping(each)]
        if not all(_holds(condition, packet) for condition in conditions):
            continue
        if "accept" in _verdicts(rule):
            return True
        targets = [at(each, key, "target") for each in rule for key in ("jump", "goto") if key in mapping(each)]
        # The kernel limits jumps to 16 (NFT_JUMP_STACK_SIZE), so the recursion is bounded.
        if any(_accepts(rules, (*chain[:2], line(target, 80)), packet, seen) for target in targets):
            return True
    return False


def _holds(condition: Mapping[str, Any], packet: Packet) -> bool:
    """Return whether a condition holds for all these packets."""
    if condition.get("op") not in ("==", "in"):
        return False
    left, right = mapping(condition.get("left")), condition.get("right")
    payload, meta = mapping(left.get("payload")), mapping(left.get("meta"))
    address = {"saddr": packet.source, "daddr": packet.destination}.get(str(payload.get("field")))
    if payload.get("protocol") == "ip" and address is not None:
        return any(address.subnet_of(each) for each in _networks(right))
    if payload.get("field") == "dport" and packet.port:
        return payload.get("protocol") in (packet.protocol, "th") and any(packet.port in each for each in _ports(right))
    if packet.port and (meta.get("key") == "l4proto" or payload == {"protocol": "ip", "field": "protocol"}):
        return packet.protocol in [str(each) for each in _elements(right)]
    # The interface of the cluster is not known here, so one that is accepted as a whole may be that one.
    return bool(packet.port) and meta.get("key") in ("iif", "iifname") and LOOPBACK not in _elements(right)


def _elements(value: Any) -> Sequence[Any]:
    return items(at(value, "set")) or [value]


def _networks(value: Any) -> Iterator[ipaddress.IPv4Network]:
    """Yield the networks of the right side of a condition: an address, a prefix, or a set of them."""
    for each in _elements(value):
        address = at(each, "prefix", "addr") if mapping(each) else each
        length = whole(at(each, "prefix", "len"), 0, 32) if mapping(each) else 32
        try:
            yield ipaddress.IPv4Network(f"{line(address, 40)}/{length}", strict=False)
        except ValueError:
            continue


def _ports(value: Any) -> Iterator[range]:
    """Yield the ports of the right side of a condition: a number, a range, or a set of them."""
    for each in _elements(value):
        ends = items(at(each, "range")) if mapping(each) else (each, each)
        first, last = (whole(end, 0, 65535) for end in ends) if len(ends) == 2 else (None, None)
        if first is not None and last is not None:
            yield range(first, last + 1)
