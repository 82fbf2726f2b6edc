"""Firewall rules that would drop packets of pods: rulesets as `nft --json list ruleset` prints them."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Sequence
from typing import Any

import pytest

from trainyard.core.errors import CommandError
from trainyard.host import nftables
from trainyard.host.forwarding import problems

PODS = ipaddress.IPv4Network("10.244.0.0/16")
BOTH = (nftables.Packet(source=PODS), nftables.Packet(destination=PODS))
DROP, ACCEPT = {"drop": None}, {"accept": None}
PLACE = {"family": "inet", "table": "filter"}


def chain(name: str = "forward", hook: str = "forward", policy: str = "drop", **place: str) -> dict[str, Any]:
    values = {**PLACE, **place, "name": name, "type": "filter", "hook": hook, "prio": 0, "policy": policy}
    return {"chain": values}


def rule(*expressions: dict[str, Any], chain: str = "forward", **place: str) -> dict[str, Any]:
    return {"rule": {**PLACE, **place, "chain": chain, "handle": 4, "expr": list(expressions)}}


def match(field: str, right: Any, operator: str = "==") -> dict[str, Any]:
    return {"match": {"op": operator, "left": {"payload": {"protocol": "ip", "field": field}}, "right": right}}


def prefix(text: str) -> dict[str, Any]:
    network = ipaddress.IPv4Network(text)
    return {"prefix": {"addr": str(network.network_address), "len": network.prefixlen}}


OPEN = [rule(match(field, prefix("10.244.0.0/16")), ACCEPT) for field in ("saddr", "daddr")]
TRUSTED = [
    rule(match("saddr", prefix("10.0.0.0/8")), {"jump": {"target": "trusted"}}),
    rule(match("daddr", {"set": ["192.0.2.1", prefix("10.240.0.0/12")]}), {"goto": {"target": "trusted"}}),
    rule(ACCEPT, chain="trusted"),
]


@pytest.mark.parametrize(
    "ruleset",
    [
        [],
        [chain(policy="accept")],
        [chain(hook="input")],
        # Docker and ufw: Calico accepts in this chain.
        [chain("FORWARD", family="ip", table="filter")],
        [chain(), *OPEN],
        [chain(), *TRUSTED],
        [chain(policy="accept"), rule(match("saddr", "192.0.2.1"), DROP)],
        [chain(policy="accept"), *OPEN, rule({"counter": {}}, {"reject": {}})],
        [{"metainfo": {}}, 3, {"chain": []}, {"rule": {"expr": 3}}],
    ],
)
def test_rules_that_let_pods_pass(ruleset: Sequence[Any]) -> None:
    assert list(nftables.dropping(ruleset, "forward", BOTH)) == []


@pytest.mark.parametrize(
    "ruleset",
    [
        [chain()],
        [chain(policy="accept"), rule({"counter": {"packets": 1}}, {"reject": {"type": "icmpx"}})],
        [chain(), OPEN[0]],
        [chain(), *[rule(match(field, prefix("10.244.0.0/17")), ACCEPT) for field in ("saddr", "daddr")]],
        [chain(), *[rule(match(field, prefix("10.244.0.0/16"), "!="), ACCEPT) for field in ("saddr", "daddr")]],
        # A second condition lets only some of the packets pass.
        [
            chain(),
            *[rule(match(f, prefix("10.244.0.0/16")), match("protocol", "tcp"), ACCEPT) for f in ("saddr", "daddr")],
        ],
        [chain(), *TRUSTED[:2]],
        [chain(), *TRUSTED[:2], rule(match("saddr", "192.0.2.1"), ACCEPT, chain="trusted")],
        [chain(), rule({"jump": {"target": "forward"}})],
        [
            chain(),
            rule(match("saddr", {"prefix": {"addr": "x", "len": 99}}), ACCEPT),
            rule(match("daddr", None), ACCEPT),
        ],
    ],
)
def test_rules_that_drop_pods(ruleset: Sequence[Any]) -> None:
    assert [place for place, _ in nftables.dropping(ruleset, "forward", BOTH)] == [("inet", "filter", "forward")]


def test_the_reasons_name_the_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    made = chain("fw", table="f")
    printed = {"nft": json.dumps({"nftables": [made]})}
    printed["iptables-legacy-save"] = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [0:0]\n"
    monkeypatch.setattr(nftables, "output", lambda argv: printed[argv[0]])
    table, legacy = problems("10.244.0.0/16")
    assert "nft insert rule inet f fw ip saddr 10.244.0.0/16 accept; nft insert rule inet f fw ip daddr" in table.remedy
    assert (legacy.code, "iptables-legacy -P FORWARD ACCEPT" in legacy.remedy) == ("forward_drop_legacy", True)
    assert [each.code for each in problems("10.244.0.0/16", legacy_is_used=True)] == ["forward_drop"]


@pytest.mark.parametrize("output", ["", "not JSON", "[" * 100_000, "3", '{"nftables": {}}'])
def test_other_output_is_no_ruleset(output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nftables, "output", lambda argv: output)
    assert problems("10.244.0.0/16") == []


def test_without_program_or_tables_there_are_no_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(argv: Sequence[str], timeout: float) -> None:
        raise CommandError("the kernel has no such tables")

    monkeypatch.setattr(nftables, "run", run)
    monkeypatch.setattr(nftables.shutil, "which", lambda name: None if name == "nft" else name)
    assert (list(nftables.ruleset()), nftables.output(["iptables-legacy-save"])) == ([], "")
