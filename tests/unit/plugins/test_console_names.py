"""For which names the console has its certificate, by the inventory."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
from ansible.template import Templar, trust_as_template

from tests.conftest import ROOT
from tests.unit.plugins.test_kubelets_filter import HostVars

init_plugin_loader()
NAME = "__dashboard_control_plane_names"


def names(known: dict[str, Any], raw: dict[str, Any]) -> list[str]:
    loader = DataLoader()
    text = loader.load_from_file(str(ROOT / "roles/dashboard/vars/main.yml"))[NAME]
    hostvars = HostVars({"cp1": known}, {"cp1": {**known, **raw}})
    values = {"groups": {"control_plane": ["cp1"]}, "hostvars": hostvars, "control_plane_endpoint": "api.test:6443"}
    found: list[str] = Templar(loader=loader, variables=values).template(trust_as_template(text))
    return found


@pytest.mark.parametrize(
    ("known", "raw", "expected"),
    [
        ({"ansible_host": "10.1.0.10"}, {}, ["10.1.0.10", "cp1", "api.test"]),
        ({"ansible_host": "cp1.test"}, {}, ["cp1.test", "cp1", "api.test"]),
        # The address that is printed with a node port is the node's own.
        (
            {"ansible_host": "cp1.test", "kubernetes_node_ip": "10.1.0.10"},
            {},
            ["cp1.test", "cp1", "api.test", "10.1.0.10"],
        ),
        (
            {"ansible_host": "192.0.2.1", "kubernetes_node_ip": "10.1.0.10"},
            {},
            ["192.0.2.1", "cp1", "api.test", "10.1.0.10"],
        ),
        # A host does not say for which address people trust it.
        (
            {"ansible_host": "cp1.test", "kubernetes_node_ip": "10.6.6.6"},
            {"kubernetes_node_ip": "{{ ansible_facts['eth1']['ipv4']['address'] }}"},
            ["cp1.test", "cp1", "api.test"],
        ),
    ],
)
def test_names_of_the_certificate(known: dict[str, Any], raw: dict[str, Any], expected: list[str]) -> None:
    assert names(known, raw) == expected
