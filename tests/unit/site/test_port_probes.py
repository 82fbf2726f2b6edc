"""Which hosts probe each other, and whom a failed connection refuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainyard.site.ports import port_probes, probe_reasons, probe_targets, site_addresses

PORTS = [
    {"port": 6443, "group": "control_plane", "from": ["control_plane", "cluster", "controller"]},
    {"port": 10250, "group": "cluster", "from": ["control_plane", "cluster", "pods"]},
    {"port": 4789, "group": "cluster", "protocol": "udp", "from": ["cluster"]},
    {"port": 443, "group": "mirror", "from": ["cluster"]},
    {"port": 10248, "group": "cluster", "from": []},
]
NEW: dict[str, Any] = {"host_reasons": [], "__base_preflight": {"cluster": {}}}
NODE: dict[str, Any] = {"host_reasons": [], "__base_preflight": {"cluster": {"name": "kubernetes"}}}


class Hosts(dict[str, dict[str, Any]]):
    """As much of Ansible's variables of all hosts as the filters use."""

    def raw_get(self, name: str) -> dict[str, Any]:
        return self[name]


def site(**hosts: Mapping[str, Any]) -> tuple[Hosts, dict[str, list[str]], dict[str, str]]:
    """Return variables, groups and addresses: cp* are control planes, m* are mirrors."""
    names = list(hosts)
    groups = {
        "control_plane": [name for name in names if name.startswith("cp")],
        "cluster": [name for name in names if name[0] != "m"],
        "mirror": [name for name in names if name[0] == "m"],
    }
    addresses = {name: f"10.1.0.{number}" for number, name in enumerate(names, 10)}
    return Hosts({name: dict(known) for name, known in hosts.items()}), groups, addresses


def to(probes: Mapping[str, Any], name: str) -> list[str]:
    return [f"{each['host']}:{each['port']}" for each in probes["connect"].get(name, [])]


def test_a_site_without_new_hosts_probes_nothing() -> None:
    assert port_probes(PORTS, *site(cp1=NODE, w1=NODE, m1=NODE)) == {"listen": {}, "connect": {}, "new": []}


def test_a_new_host_and_the_control_plane_connect_to_each_other() -> None:
    probes = port_probes(PORTS, *site(cp1=NODE, w1=NODE, w2=NEW, m1=NODE))
    assert to(probes, "w2") == ["cp1:6443", "cp1:10250", "cp1:4789", "m1:443", "w1:10250", "w1:4789"]
    assert to(probes, "cp1") == ["w2:10250", "w2:4789"]
    assert to(probes, "w1") == [] and list(probes["listen"]) == ["w2", "m1"]


def test_a_large_site_has_three_others_for_each_host() -> None:
    probes = port_probes(PORTS, *site(cp1=NEW, **{f"w{number}": NEW for number in range(500)}))
    assert {each.partition(":")[0] for each in to(probes, "w498")} == {"cp1", "w499", "w0"}
    assert {each.partition(":")[0] for each in to(probes, "w7")} == {"cp1", "w8", "w9", "w10"}
    assert len(to(probes, "cp1")) == 1000


def test_a_host_with_a_closed_firewall_or_without_a_result_is_no_target() -> None:
    closed = {**NEW, "host_reasons": [{"code": "firewall", "cause": "x", "remedy": "y"}]}
    probes = port_probes(PORTS, *site(cp1=NEW, w1=closed, w2={"host_reasons": None}, w3={}))
    assert to(probes, "cp1") == [] and to(probes, "w1") == ["cp1:6443", "cp1:10250", "cp1:4789"]
    assert list(probes["listen"]) == ["cp1", "w1"]


def test_a_datagram_needs_a_listener() -> None:
    hosts, groups, addresses = site(cp1=NODE, w1=NEW, w2=NEW)
    probes = port_probes(PORTS, hosts, groups, addresses)
    hosts["w2"]["port_listener"] = {"ports": [{"port": 4789, "protocol": "udp"}]}
    found = [(each["host"], each["port"], each["listens"]) for each in probe_targets(probes, "w1", hosts)]
    # The kubelet's port of w2 is another program's. cp1 has no listener, so no datagram is sent to it.
    assert found == [("cp1", 6443, False), ("cp1", 10250, False), ("w2", 10250, False), ("w2", 4789, True)]


def test_a_running_mirror_is_probed() -> None:
    hosts, groups, addresses = site(cp1=NODE, w1=NEW, m1=NODE)
    probes = port_probes(PORTS, hosts, groups, addresses)
    hosts["m1"]["port_listener"] = {"ports": []}
    assert ("m1", 443, False) in [
        (each["host"], each["port"], each["listens"]) for each in probe_targets(probes, "w1", hosts)
    ]


def test_a_host_without_an_ipv4_address_is_new_and_no_target() -> None:
    hosts, groups, addresses = site(cp1=NODE, w1=NEW, w2=NEW)
    probes = port_probes(PORTS, hosts, groups, {**addresses, "w1": "fd00::7", "w2": ""})
    assert (
        probes["new"] == ["w1", "w2"]
        and to(probes, "cp1") == []
        and to(probes, "w1") == ["cp1:6443", "cp1:10250", "cp1:4789"]
    )


def test_the_mirror_has_its_own_address() -> None:
    known = {"m1": {"ansible_host": "192.0.2.1", "mirror_address": "10.1.0.2", "group_names": ["mirror"]}}
    known["w1"] = {"ansible_host": "10.1.0.9", "mirror_address": "10.1.0.2", "group_names": ["cluster"]}
    assert site_addresses(["m1", "w1"], known) == {"m1": "10.1.0.2", "w1": "10.1.0.9"}


def unreached(host: str, *ports: str, why: str = "no answer") -> dict[str, Any]:
    rows = [dict(zip(("port", "protocol"), port.split("/"), strict=True)) for port in ports]
    return {
        "unreached": [
            {"host": host, "address": "10.1.0.9", "why": why, **row, "port": int(row["port"])} for row in rows
        ]
    }


def test_the_new_host_is_refused() -> None:
    hosts, groups, addresses = site(cp1=NODE, w1=NEW, w2=NODE)
    probes = port_probes(PORTS, hosts, groups, addresses)
    hosts["cp1"]["port_probe"] = unreached("w1", "10250/tcp", "4789/udp")
    hosts["w1"]["port_probe"] = unreached("cp1", "6443/tcp", why="no route to host")
    assert probe_reasons(probes, "cp1", hosts) == []
    first, second = (each["cause"] for each in probe_reasons(probes, "w1", hosts))
    assert "from w1 do not reach cp1 (10.1.0.9) at 6443/tcp: no route to host" in first + second
    assert "from cp1 do not reach w1 (10.1.0.9) at 10250/tcp, 4789/udp: no answer" in first + second


def test_of_new_hosts_the_one_that_is_not_reached_is_refused_once() -> None:
    hosts, groups, addresses = site(cp1=NEW, w1=NEW, **{f"w{number}": NEW for number in range(2, 10)})
    probes = port_probes(PORTS, hosts, groups, addresses)
    for name in hosts:
        hosts[name]["port_probe"] = unreached("w1", "10250/tcp")
    assert probe_reasons(probes, "cp1", hosts) == []
    (found,) = probe_reasons(probes, "w1", hosts)
    assert "from cp1, w1, w2, w3, w4 and 5 others do not reach w1" in found["cause"]


def test_the_answer_of_a_hostile_host_is_text() -> None:
    hosts, groups, addresses = site(cp1=NODE, w1=NEW)
    probes = port_probes(PORTS, hosts, groups, addresses)
    hosts["w1"]["port_listener"] = {"ports": ["x", {"port": []}, None]}
    hosts["w1"]["port_probe"] = {"unreached": [7, {"host": "a\n\x1b[31m", "port": "{{ 1 }}", "why": None}]}
    found = probe_reasons(probes, "w1", hosts)
    assert found and not any(mark in each["cause"] for each in found for mark in ("\n", "\x1b"))
    assert not [each for each in probe_targets(probes, "cp1", hosts) if each["listens"] or each["protocol"] == "udp"]
