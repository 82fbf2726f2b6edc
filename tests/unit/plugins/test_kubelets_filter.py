"""What a kubelet's certificate may have, by the inventory alone."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).parents[3] / "plugins/filter/kubelets.py"


def kubelet_hosts(hosts: list[str], hostvars: Any) -> Any:
    spec = importlib.util.spec_from_file_location("kubelets_filter", FILE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.FilterModule().filters()["kubelet_hosts"](hosts, hostvars)


class HostVars(dict[str, dict[str, Any]]):
    """As Ansible's: templated values, and the raw ones beside them."""

    def __init__(self, values: dict[str, dict[str, Any]], raw: dict[str, dict[str, Any]]) -> None:
        super().__init__(values)
        self.raw = {**values, **raw}

    def raw_get(self, host: str) -> dict[str, Any]:
        return self.raw[host]


@pytest.mark.parametrize(
    ("known", "raw", "expected"),
    [
        ({"ansible_host": "10.1.0.21"}, {}, {"w": {"names": ["w"], "addresses": ["10.1.0.21"]}}),
        ({"ansible_host": "w.example.org"}, {}, {"w": {"names": ["w"], "addresses": []}}),
        ({}, {}, {"w": {"names": ["w"], "addresses": []}}),
        (
            {"ansible_host": "192.0.2.1", "kubernetes_node_ip": "10.1.0.21"},
            {},
            {"w": {"names": ["w"], "addresses": ["10.1.0.21"]}},
        ),
        (
            {"ansible_host": "10.1.0.21", "kubernetes_node_name": "node-a"},
            {},
            {"node-a": {"names": ["node-a"], "addresses": ["10.1.0.21"]}},
        ),
        # Templates of other variables of the inventory are as good as these.
        (
            {"ansible_host": "10.1.0.21"},
            {"ansible_host": "{{ address_of_the_host }}"},
            {"w": {"names": ["w"], "addresses": ["10.1.0.21"]}},
        ),
        (
            {"ansible_host": "w.example.org", "kubernetes_node_ip": "10.6.6.6"},
            {"kubernetes_node_ip": "{{ ansible_facts['default_ipv4']['address'] }}"},
            {"w": {"names": ["w"], "addresses": []}},
        ),
        (
            {"ansible_host": "w.example.org", "kubernetes_node_ip": "10.6.6.6", "inner": "10.6.6.6"},
            {"kubernetes_node_ip": "{{ outer }}", "outer": "{{ inner }}", "inner": "{{ ansible_facts['eth1'] }}"},
            {"w": {"names": ["w"], "addresses": []}},
        ),
        (
            {"ansible_host": "w.example.org", "kubernetes_node_ip": "10.1.0.5", "inner": "10.1.0.5"},
            {"kubernetes_node_ip": "{{ inner }}", "inner": "{{ kubernetes_node_ip | default('10.1.0.5') }}"},
            {"w": {"names": ["w"], "addresses": ["10.1.0.5"]}},
        ),
    ],
)
def test_names_and_addresses(known: dict[str, Any], raw: dict[str, Any], expected: Any) -> None:
    assert kubelet_hosts(["w"], HostVars({"w": known}, {"w": {**known, **raw}})) == expected
