"""The lookup of the site's proxy: all hosts of the inventory are exceptions, and the list is the same in each run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible.vars.hostvars import HostVars
from ansible.vars.manager import VariableManager

from plugins.lookup import site_proxy

INVENTORY = """
all:
  vars:
    base_proxy: {https: "{{ proxy_url }}", none: [.corp]}
    proxy_url: http://proxy.example.org:3128
    control_plane_endpoint: "api.example.org:6443"
    kubernetes_dns_domain: k8s.example
    kubernetes_pod_cidr: 10.200.0.0/16
    mirror_name: mirror.example.org
    mirror_address: "{{ hostvars['m1'].ansible_host }}"
    base_hosts_entries: {nas.internal: 192.0.2.9}
  hosts:
    localhost: {ansible_connection: local, base_proxy: {}}
  children:
    placeholder: {hosts: {__placeholder: {ansible_host: 192.0.2.66}}}
    mirror: {hosts: {m1: {ansible_host: 10.1.0.2}}}
    control_plane: {hosts: {cp1: {ansible_host: cp1.example.org, kubernetes_node_ip: 10.1.0.10}}}
    workers:
      hosts:
        w1: {ansible_host: 10.1.0.21, kubernetes_node_ip: "{{ ansible_facts['default_ipv4']['address'] }}"}
        w2: {ansible_host: "{{ unknown }}"}
"""


@pytest.fixture
def look(tmp_path: Path) -> Any:
    (tmp_path / "hosts.yml").write_text(INVENTORY)
    loader = DataLoader()
    inventory = InventoryManager(loader=loader, sources=[str(tmp_path / "hosts.yml")])
    manager = VariableManager(loader=loader, inventory=inventory)

    def lookup(*terms: str, host: str = "w1", changes: dict[str, Any] | None = None, **options: Any) -> dict[str, str]:
        manager.set_host_facts(inventory.get_host("w1"), {"ansible_facts": {"default_ipv4": {"address": "192.0.2.77"}}})
        variables = {**manager.get_vars(host=inventory.get_host(host)), **(changes or {})}
        variables["hostvars"] = HostVars(inventory, manager, loader)
        plugin = site_proxy.LookupModule(loader=loader, templar=Templar(loader, variables=variables))
        (found,) = plugin.run(list(terms), variables, **options)
        return found

    return lookup


def test_the_exceptions_of_a_site(look: Any) -> None:
    assert look() == {
        "HTTPS_PROXY": "http://proxy.example.org:3128",
        "NO_PROXY": ".corp,.k8s.example,.svc,10.1.0.10,10.1.0.2,10.1.0.21,10.200.0.0/16,10.96.0.0/16,127.0.0.1,"
        "169.254.169.254,::1,api.example.org,cp1,cp1.example.org,localhost,m1,mirror.example.org,nas.internal,w1,w2",
    }


def test_every_host_has_the_same_list(look: Any) -> None:
    assert look() == look(host="w2") == look("w1", host="localhost") == look("cp1", host="localhost")


def test_a_delegated_task_has_the_proxy_of_its_machine(look: Any) -> None:
    assert look("localhost") == {} and look(host="localhost") == {}
    assert look("w1", host="localhost")["HTTPS_PROXY"] == "http://proxy.example.org:3128"


@pytest.mark.parametrize("value", [None, {}, {"none": ["a"]}, {"http": ""}])
def test_a_site_without_a_proxy(look: Any, value: Any) -> None:
    assert look(changes={"base_proxy": value}) == {}


def test_a_variable_that_is_not_set(look: Any) -> None:
    found = look(changes={"base_proxy": {"http": "http://p"}, "kubernetes_pod_cidr": "{{ ansible_facts['x'] }}"})
    assert found["HTTP_PROXY"] == "http://p" and "10.244.0.0/16" in found["NO_PROXY"]


def test_programs_of_the_api_get_empty_values(look: Any) -> None:
    found = look(direct=True)
    assert set(found.values()) == {""} and {"HTTPS_PROXY", "https_proxy", "NO_PROXY", "all_proxy"} < found.keys()
    assert len(found) == 8
