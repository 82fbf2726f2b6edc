"""Firewalls that close ports of a site: rulesets of nftables, and the files of ufw."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.host.test_forwarding import chain, match, prefix, rule
from trainyard.host import facts, nftables, software
from trainyard.host.firewalls import needed, problems
from trainyard.site.ports import needed_ports, site_addresses

PORTS = needed(
    [
        {"port": 10250, "protocol": "tcp", "sources": ["10.1.0.10", "10.1.0.21"]},
        {"port": 4789, "protocol": "udp", "sources": ["10.1.0.10", "10.1.0.21", "2001:db8::1"]},
        {"port": 6443, "protocol": "tcp", "sources": []},
    ]
)
INPUT = {"name": "input", "hook": "input"}
ACCEPT = {"accept": None}
SITE = match("saddr", prefix("10.1.0.0/24"))


def dport(protocol: str, right: Any) -> dict[str, Any]:
    return {"match": {"op": "==", "left": {"payload": {"protocol": protocol, "field": "dport"}}, "right": right}}


def meta(key: str, right: Any) -> dict[str, Any]:
    return {"match": {"op": "==", "left": {"meta": {"key": key}}, "right": right}}


def given(monkeypatch: pytest.MonkeyPatch, *ruleset: dict[str, Any]) -> None:
    monkeypatch.setattr(nftables, "output", lambda argv: json.dumps({"nftables": ruleset}))


SSH = rule(dport("tcp", 22), ACCEPT, chain="input")


@pytest.mark.parametrize(
    "rules",
    [
        [rule(SITE, dport("tcp", 10250), ACCEPT, chain="input"), rule(SITE, dport("udp", 4789), ACCEPT, chain="input")],
        [rule(dport("tcp", {"set": [22, {"range": [10248, 10260]}]}), ACCEPT, chain="input"),
         rule(meta("l4proto", "udp"), SITE, ACCEPT, chain="input")],
        [rule(dport("th", {"set": [10250, 4789]}), ACCEPT, chain="input")],
        [rule(meta("iifname", "ens4"), ACCEPT, chain="input")],
        [rule(SITE, {"jump": {"target": "site"}}, chain="input"), rule(ACCEPT, chain="site")],
        [rule(meta("iifname", "ens4"), {"goto": {"target": "zone"}}, chain="input"), rule(SITE, ACCEPT, chain="zone")],
    ],
)  # fmt: skip
def test_open_ports(rules: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given(monkeypatch, chain(**INPUT), SSH, *rules)
    assert problems(PORTS, tmp_path) == []


@pytest.mark.parametrize(
    "rules",
    [
        [],
        [rule(meta("iif", "lo"), ACCEPT, chain="input")],
        [rule(SITE, dport("udp", 10250), ACCEPT, chain="input")],
        [rule(match("saddr", "10.1.0.10"), ACCEPT, chain="input")],
        [rule(match("ct", "x"), dport("tcp", 10250), ACCEPT, chain="input")],
        [rule(dport("tcp", {"range": [1, 10249]}), ACCEPT, chain="input")],
        [
            rule(dport("tcp", {"range": ["a", None, 3]}), ACCEPT, chain="input"),
            rule(dport("tcp", {}), ACCEPT, chain="input"),
        ],
    ],
)
def test_closed_ports_are_named_with_commands(
    rules: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given(monkeypatch, chain(**INPUT), SSH, *rules)
    (found,) = problems(PORTS, tmp_path)
    assert "the chain input of the nftables table inet filter drops connections" in found.cause
    assert "10250/tcp, 4789/udp" in found.cause
    command = "nft insert rule inet filter input ip saddr 10.1.0.0/27 tcp dport 10250 accept"
    assert command in found.remedy or "ip saddr 10.1.0.21/32" in found.remedy


def test_the_commands_for_firewalld_are_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    last = rule({"reject": {"type": "icmpx"}}, chain="filter_INPUT", table="firewalld")
    given(monkeypatch, chain("filter_INPUT", "input", "accept", table="firewalld"), last)
    (found,) = problems(PORTS, tmp_path)
    assert (
        "--add-rich-rule='rule family=ipv4 source address=10.1.0.0/27 port port=10250 protocol=tcp accept'"
        in found.remedy
    )
    assert found.remedy.endswith("then run `firewall-cmd --reload`.")


def ufw(root: Path, *tuples: str, enabled: str = "yes", policy: str = '"DROP"') -> Path:
    """Write the files of ufw 0.36 as `ufw enable` and `ufw allow` do."""
    (root / "etc/ufw").mkdir(parents=True)
    (root / "etc/default").mkdir()
    (root / "etc/ufw/ufw.conf").write_text(f"# on boot\nENABLED={enabled}\n")
    (root / "etc/default/ufw").write_text(f"IPV6=yes\nDEFAULT_INPUT_POLICY={policy}\n")
    rules = "".join(f"### tuple ### {each}\n-A ufw-user-input -j ACCEPT\n\n" for each in tuples)
    (root / "etc/ufw/user.rules").write_text(f"*filter\n### RULES ###\n\n{rules}### END RULES ###\n")
    return root


SSH_TUPLE = "allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in"


@pytest.mark.parametrize(
    ("tuples", "closed"),
    [
        ([SSH_TUPLE], "10250/tcp, 4789/udp"),
        ([SSH_TUPLE, "allow tcp 10250 0.0.0.0/0 any 10.1.0.0/24 in"], "4789/udp"),
        (["allow any any 0.0.0.0/0 any 10.1.0.0/24 in"], ""),
        (["allow tcp 10248:10260,6443 0.0.0.0/0 any 0.0.0.0/0 in", "allow udp 4789 0.0.0.0/0 any 10.1.0.0/16 in"], ""),
        (["deny any any 0.0.0.0/0 any 10.1.0.0/24 in", "allow tcp x 0.0.0.0/0 any y in"], "10250/tcp, 4789/udp"),
        (["allow any any 0.0.0.0/0 any 10.1.0.0/24 out"], "10250/tcp, 4789/udp"),
        (["route:allow any any 0.0.0.0/0 any 10.1.0.0/24 in"], "10250/tcp, 4789/udp"),
        # `ufw allow log`, an application of /etc/ufw/applications.d, an interface, a comment
        (["allow_log tcp 10250 0.0.0.0/0 any 10.1.0.0/24 in", "allow udp 4789 0.0.0.0/0 any 0.0.0.0/0 VXLAN - in"], ""),
        (["allow any any 0.0.0.0/0 any 0.0.0.0/0 in_eth1 comment=7369746573"], ""),
    ],
)
def test_ufw(tuples: list[str], closed: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(nftables, "output", lambda argv: "")
    found = problems(PORTS, ufw(tmp_path, *tuples))
    assert [f"ufw drops connections that other hosts need: {closed}"] * bool(closed) == [each.cause for each in found]
    if "4789/udp" in closed:
        assert "ufw allow proto udp from 10.1.0.0/27 to any port 4789" in found[0].remedy


@pytest.mark.parametrize("settings", [{"enabled": "no"}, {"policy": '"ACCEPT"'}])
def test_ufw_that_is_off(settings: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(nftables, "output", lambda argv: "")
    assert problems(PORTS, ufw(tmp_path, **settings)) == []


def test_sources_that_are_far_apart_are_listed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given(monkeypatch, chain(**INPUT))
    sources = ["10.1.0.10", "192.168.7.9", "10.1.0.17", "10.244.0.0/16"]
    ports = needed([{"port": 6443, "protocol": "tcp", "sources": sources}])
    (found,) = problems(ports, tmp_path)
    commands = found.remedy.split("`")[1].split("; ")
    assert [command.split("saddr ")[1].split()[0] for command in commands] == [
        "10.1.0.0/27", "192.168.7.9/32", "10.244.0.0/16",
    ]  # fmt: skip


def test_hosts_are_opened_as_one_network_beside_the_pods(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given(monkeypatch, chain(**INPUT))
    ports = needed([{"port": 10250, "protocol": "tcp", "sources": ["10.1.0.10", "10.244.0.0/16", "10.1.0.21"]}])
    (found,) = problems(ports, tmp_path)
    assert found.remedy.count("nft insert rule") == 2 and "saddr 10.1.0.0/27" in found.remedy


def test_the_ports_of_a_host_with_their_sources() -> None:
    groups = {"cluster": ["cp1", "w1", "w2"], "control_plane": ["cp1"], "mirror": ["m1"], "builders": ["b1"]}
    known = {"cp1": {"ansible_host": "10.1.0.10"}, "w1": {"ansible_host": "w1.lan", "kubernetes_node_ip": "10.1.0.21"}}
    known |= {"w2": {"ansible_host": "w2.lan"}, "b1": {"ansible_host": "10.1.0.31"}, "m1": {}}
    ports = [
        {"port": 10250, "group": "cluster", "from": ["control_plane", "cluster", "pods"]},
        {"port": 4789, "group": "cluster", "protocol": "udp", "from": ["cluster"]},
        {"port": 443, "group": "mirror", "from": ["cluster"]},
        {"port": 10248, "group": "cluster", "from": []},
        {"port": 30443, "group": "cluster", "from": ["clients"]},
    ]
    addresses = site_addresses(list(known), known)
    assert addresses == {"cp1": "10.1.0.10", "w1": "10.1.0.21", "b1": "10.1.0.31"}
    assert needed_ports(ports, "w2", groups, addresses, "10.244.0.0/16") == [
        {"port": 10250, "protocol": "tcp", "sources": ["10.1.0.10", "10.1.0.21", "10.244.0.0/16"]},
        {"port": 4789, "protocol": "udp", "sources": ["10.1.0.10", "10.1.0.21"]},
    ]


def test_many_jumps_take_no_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Four jumps in each of fifteen chains are a billion ways through the rules."""
    jumps = [
        rule({"jump": {"target": f"c{number + 1}"}}, chain=f"c{number}" if number else "input")
        for number in range(15)
        for _ in range(4)
    ]
    given(monkeypatch, chain(**INPUT), *jumps)
    assert [each.code for each in problems(PORTS, tmp_path)] == ["firewall"]


@pytest.mark.parametrize(("own", "codes"), [("", []), ("10.1.0.9", []), ("10.0.0.9", ["firewall_address"])])
def test_a_node_with_an_unknown_address_gets_no_firewall(
    own: str, codes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given(monkeypatch)
    monkeypatch.setattr(facts, "node_address", lambda: own)
    params = {"ports": {}, "cluster": None, "firewall_address": "10.1.0.9", "files": [], "replace": []}
    found = software.problems({**params, "features": [], "sysctls": {}}, None)
    assert [each.code for each in found] == codes
    assert not found or "Set kubernetes_node_ip of the host to 10.0.0.9." in found[0].remedy
