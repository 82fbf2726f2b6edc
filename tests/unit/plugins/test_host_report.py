"""host_report: answers of a hostile host end neither the report nor the lines of others."""

from __future__ import annotations

import importlib.util
from types import ModuleType
from typing import Any

import pytest

from tests.unit.playbooks.runs import ROOT


@pytest.fixture(scope="module")
def report() -> ModuleType:
    spec = importlib.util.spec_from_file_location("host_report", ROOT / "plugins/action/host_report.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GOOD = {
    "host_reasons": [],
    "host_checks_ended": True,
    "host_node_ip": "10.1.0.10",
    "__base_preflight": {"host": {"system": "debian-13", "machine": "x86_64", "machine_id": "0123"}},
    "ansible_facts": {
        "interfaces": ["ens3", "br-lan"],
        "ens3": {"ipv4": {"address": "192.0.2.1"}},
        "br_lan": {"ipv4": {"address": "10.1.0.10"}},
        "default_ipv4": {"interface": "ens3"},
    },
}


def test_address_and_unused_default_route_are_shown(report: ModuleType) -> None:
    words = "debian-13 x86_64, node address 10.1.0.10 on br-lan, the default route on ens3 is not used"
    assert report._state(GOOD, later=False)["about"] == words


@pytest.mark.parametrize(
    "changes",
    [
        {"__base_preflight": "text"},
        {"__base_preflight": {"host": ["system"]}},
        {"__base_preflight": {"host": {"machine_id": ["x"], "system": {}, "machine": 7}}},
        {"ansible_facts": ["x"]},
        {"ansible_facts": {"interfaces": "eth0", "default_ipv4": "10.1.0.10"}},
        {"ansible_facts": {"interfaces": [{}, None, "eth0"], "eth0": ["ipv4"]}},
        {"host_reasons": ["text", None, {"cause": ["x"]}]},
        {"host_reasons": "text"},
        {"host_node_ip": {"a": 1}},
    ],
)
def test_any_answer_of_a_host_gives_a_line(report: ModuleType, changes: dict[str, Any]) -> None:
    state = report._state({**GOOD, **changes}, later=False)
    assert report._twins({"w1": state, "w2": report._state(GOOD, later=False)}) is not None
    assert report._line("w1", state, 2).startswith("w1  ")


PROXY = {"/etc/environment": "http://***@proxy:3128"}


def seen(proxies: Any) -> dict[str, Any]:
    return {"__base_preflight": {"proxies": proxies}}


def test_a_proxy_that_only_the_environment_names_is_reported(report: ModuleType) -> None:
    known = {"cp1": seen(PROXY), "w1": seen(PROXY), "w2": seen({}), "w3": {}}
    (hosts, controller) = report._proxies(known, {"its environment": "http://other:80"})
    assert hosts.startswith("base_proxy is empty, but cp1 and w1 name a proxy: http://***@proxy:3128 in /etc/env")
    assert "but this controller names a proxy: http://other:80 in its environment. Set base_proxy" in controller
    assert report._proxies({"w2": seen({}), "w3": {}}, {}) == []


@pytest.mark.parametrize("answer", ["text", ["a"], {"a": {"b": 1}}, {7: None}, {"/x\ncp1 works\x1b[2J": "y\nz"}])
def test_any_proxies_of_a_host_give_one_line(report: ModuleType, answer: Any) -> None:
    text = "".join(report._proxies({"w1": seen(answer)}, {}))
    assert "\n" not in text and "\x1b" not in text
    (many,) = report._proxies({"w1": seen({f"/{number}": "http://p" for number in range(1000)})}, {})
    assert len(many) < 1000


def test_a_host_cannot_forge_a_line_of_another(report: ModuleType) -> None:
    forged = {"code": "memory", "cause": "x\ncp1  works\x1b[2J", "remedy": "y"}
    state = report._state({**GOOD, "host_reasons": [forged]}, later=False)
    text = report._line("w1", state, 2)
    assert "\n" not in text and "\x1b" not in text and state["state"] == "refused"


def test_a_firewall_that_deletes_the_rules_of_the_cluster_is_named(report: ModuleType) -> None:
    hosts = {
        "w1": {"__base_preflight": {"host": {"flushes": True}}},
        "w2": GOOD,
        "w3": {"__base_preflight": {"host": "x"}},
    }
    (found,) = report._flushing(hosts)
    assert found.startswith("On w1, nftables.service") and report._flushing({"w2": GOOD}) == []
