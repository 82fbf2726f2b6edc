"""Firewall rules of a host that would drop the packets of pods: chains at the kernel's forward hook.

Each chain at that hook must accept a packet. Calico accepts those of pods in the chain FORWARD of iptables-nft, in
which Docker and ufw would drop them. Nothing accepts them in another table, or in the tables of iptables-legacy.
"""

from __future__ import annotations

import ipaddress
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.command import run
from ..core.errors import CommandError
from ..core.untrusted import at, items, line, mapping, whole
from .preflight_checks import Reason, reason

NFT = ("nft", "--json", "list", "ruleset")
LEGACY = ("iptables-legacy-save", "-t", "filter")
TIMEOUT = 20.0
OF_IPTABLES = (("ip", "filter"), ("ip6", "filter"))
"""Tables of iptables-nft."""
DROPS = ("drop", "reject")
DEEPEST = 16
"""Most jumps that are followed; the kernel allows as many (NFT_JUMP_STACK_SIZE)."""

Rules = Mapping[tuple[str, str, str], Sequence[Sequence[Any]]]
"""Family, table and chain -> the expressions of each rule."""


def problems(network: str, *, legacy_is_used: bool = False) -> list[Reason]:
    """Return each chain that would drop packets of the pod network.

    :param network: `kubernetes_pod_cidr`.
    :param legacy_is_used: kube-proxy and Calico use iptables-legacy, too, so Calico accepts there.
    """
    found = [
        reason("forward_drop", family=family, table=table, chain=chain, network=network)
        for family, table, chain in dropping(_nft(), ipaddress.IPv4Network(network, strict=False))
    ]
    if not legacy_is_used and ":FORWARD DROP" in _output(LEGACY):
        found.append(reason("forward_drop_legacy"))
    return found


def _output(argv: Sequence[str]) -> str:
    """Return a program's output; empty if it is not installed, or if the kernel has no such tables."""
    if shutil.which(argv[0]) is None:
        return ""
    try:
        return run(argv, timeout=TIMEOUT).stdout
    except CommandError:
        return ""


def _nft() -> Sequence[Any]:
    try:
        return items(mapping(json.loads(_output(NFT) or "{}")).get("nftables"))
    except (ValueError, RecursionError):
        return []


def dropping(ruleset: Sequence[Any], network: ipaddress.IPv4Network) -> Iterator[tuple[str, str, str]]:
    """Yield family, table and name of each chain at the forward hook that drops packets from or to a network.

    A chain drops by its policy, or by a last rule without conditions. It passes if it accepts the network as a source
    and as a destination, also in a chain to which it jumps.

    :param ruleset: the list in the output of `nft --json list ruleset` (libnftables-json(5)).
    """
    rules: dict[tuple[str, str, str], list[Sequence[Any]]] = {}
    for rule in (mapping(at(each, "rule")) for each in ruleset):
        rules.setdefault(_place(rule, "chain"), []).append(items(rule.get("expr")))
    for chain in (mapping(at(each, "chain")) for each in ruleset):
        place = _place(chain, "name")
        if chain.get("hook") != "forward" or place[:2] in OF_IPTABLES or place[0] == "ip6":
            continue
        last = (rules.get(place) or [[]])[-1]
        if chain.get("policy") != "drop" and not (_is_unconditional(last) and set(_verdicts(last)) & set(DROPS)):
            continue
        if not all(_accepts(rules, place, field, network) for field in ("saddr", "daddr")):
            yield place


def _place(found: Mapping[str, Any], name: str) -> tuple[str, str, str]:
    return line(found.get("family"), 20), line(found.get("table"), 80), line(found.get(name), 80)


def _verdicts(expressions: Sequence[Any]) -> list[str]:
    return [key for each in expressions for key in mapping(each)]


def _is_unconditional(expressions: Sequence[Any]) -> bool:
    return "match" not in _verdicts(expressions)


def _accepts(rules: Rules, chain: tuple[str, str, str], field: str, network: ipaddress.IPv4Network) -> bool:
    """Return whether a chain accepts all packets with the network as their `saddr` or `daddr`."""
    return any(
        _matches(rule, field, network) and _ends_in_accept(rules, chain, rule, DEEPEST) for rule in rules.get(chain, ())
    )


def _matches(rule: Sequence[Any], field: str, network: ipaddress.IPv4Network) -> bool:
    """Return whether the only condition of a rule is an address that contains the network, or none."""
    conditions = [mapping(at(each, "match")) for each in rule if "match" in mapping(each)]
    if not conditions:
        return True
    if len(conditions) > 1 or conditions[0].get("op") not in ("==", "in"):
        return False
    if at(conditions[0], "left", "payload") != {"protocol": "ip", "field": field}:
        return False
    return any(network.subnet_of(each) for each in _networks(conditions[0].get("right")))


def _networks(value: Any) -> Iterator[ipaddress.IPv4Network]:
    """Yield the networks of the right side of a match: an address, a prefix, or a set of them."""
    for each in items(at(value, "set")) or [value]:
        address = at(each, "prefix", "addr") if mapping(each) else each
        length = whole(at(each, "prefix", "len"), 0, 32) if mapping(each) else 32
        try:
            yield ipaddress.IPv4Network(f"{line(address, 40)}/{length}", strict=False)
        except ValueError:
            continue


def _ends_in_accept(rules: Rules, chain: tuple[str, str, str], rule: Sequence[Any], depth: int) -> bool:
    if "accept" in _verdicts(rule):
        return True
    targets = [line(at(each, key, "target"), 80) for each in rule for key in ("jump", "goto") if key in mapping(each)]
    return depth > 0 and any(
        _is_unconditional(each) and _ends_in_accept(rules, chain, each, depth - 1)
        for target in targets
        for each in rules.get((*chain[:2], target), ())
    )
