"""One refusal a row: networks and addresses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.role_forms import ROLE_FORMS
from trainyard.site.forms import FORM_RULES
from trainyard.site.network_rules import NETWORK_RULES
from trainyard.site.site_model import UNRESOLVED, Setting, Site

DEFAULTS = {
    "kubernetes_pod_cidr": "10.244.0.0/16",
    "kubernetes_service_cidr": "10.96.0.0/16",
    "kubernetes_dns_ip": "10.96.0.10",
    "lab_subnet": "10.84.0.0/24",
}
LAB = {"lab_hosts": ["n1"]}


def refusals(
    values: dict[str, Any], addresses: dict[str, str] | None = None, groups: dict[str, list[str]] | None = None
) -> list[str]:
    settings = [Setting(name, value, ("n1",)) for name, value in values.items()]
    addresses = addresses or {"n1": "10.84.0.10"}
    site = Site(settings=settings, defaults=DEFAULTS, addresses=addresses, groups=groups or LAB, forms=ROLE_FORMS)
    return [str(problem) for rule in (*FORM_RULES, *NETWORK_RULES) for problem in rule(site)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"kubernetes_pod_cidr": "10.96.128.0/17"}, 'overlaps kubernetes_service_cidr "10.96.0.0/16"'),
        ({"kubernetes_service_cidr": "10.0.0.0/8"}, 'overlaps kubernetes_pod_cidr "10.244.0.0/16"'),
        ({"kubernetes_pod_cidr": "10.84.0.0/16"}, 'overlaps lab_subnet "10.84.0.0/24"'),
        ({"kubernetes_pod_cidr": "10.84.0.0/16"}, 'host n1 is "10.84.0.10": inside kubernetes_pod_cidr'),
        ({"control_plane_endpoint": "10.244.1.1:6443"}, "variable control_plane_endpoint is"),
        ({"control_plane_endpoint": "10.244.1.1:6443"}, "or correct the endpoint."),
        ({"control_plane_endpoint": "cp.example.org"}, "not host:port"),
        ({"control_plane_endpoint": "cp.example.org:0"}, "not host:port"),
        ({"kubernetes_dns_ip": "10.97.0.10"}, 'outside kubernetes_service_cidr "10.96.0.0/16"'),
        ({"kubernetes_dns_ip": "10.96.0.1"}, "belong to the network and to the API server"),
        ({"kubernetes_dns_ip": "dns"}, "not an address. Write an address, for example"),
        ({"kubernetes_pod_cidr": "10.244.1.0/16"}, "not a network. Write 10.244.0.0/16."),
        ({"kubernetes_pod_cidr": "pods"}, "for example 10.244.0.0/16."),
    ],
)
def test_refused(values: dict[str, Any], expected: str) -> None:
    assert any(expected in text for text in refusals(values)), refusals(values)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("10.85.0.10", 'host n1 is "10.85.0.10": not an address of lab_subnet "10.84.0.0/24".'),
        ("n1.example.org", "not an address of lab_subnet"),
        ("10.84.0.1", "used by the network itself or its gateway"),
        ("10.84.0.255", "used by the network itself or its gateway"),
    ],
)
def test_lab_address_refused(address: str, expected: str) -> None:
    (found,) = refusals({}, {"n1": address})
    assert expected in found


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"control_plane_endpoint": "10.84.0.10:6443"},
        {"control_plane_endpoint": "[fd00::1]:6443"},
        {"kubernetes_pod_cidr": "fd01::/48"},
        {"kubernetes_pod_cidr": UNRESOLVED},
        {"kubernetes_service_cidr": "10.97.0.0/28", "kubernetes_dns_ip": "10.97.0.2"},
    ],
)
def test_accepted(values: dict[str, Any]) -> None:
    assert refusals(values) == []


def test_lab_default_means_nothing_to_a_site_without_a_lab() -> None:
    addresses = {"n1": "192.0.2.1"}
    assert refusals({"kubernetes_pod_cidr": "10.84.0.0/16"}, addresses, {"control_plane": ["n1"]}) == []


def test_network_that_differs_between_hosts() -> None:
    settings = [
        Setting("kubernetes_pod_cidr", "10.244.0.0/16", ("n1",)),
        Setting("kubernetes_pod_cidr", "10.245.0.0/16", ("n2",)),
    ]
    (found,) = [str(problem) for rule in (*FORM_RULES, *NETWORK_RULES) for problem in rule(Site(settings=settings))]
    assert 'variable kubernetes_pod_cidr (n2) is "10.245.0.0/16": other hosts have "10.244.0.0/16".' in found


def test_remedy_fits_a_small_service_network() -> None:
    found = refusals({"kubernetes_service_cidr": "10.97.0.0/30", "kubernetes_dns_ip": "10.98.0.1"})
    assert any("for example 10.97.0.3." in text for text in found)


def test_one_host_that_overrides_a_network_which_the_others_have_by_default() -> None:
    setting = Setting("kubernetes_pod_cidr", "10.1.0.0/16", ("n2",))
    site = Site(settings=[setting], defaults=DEFAULTS, groups={"cluster": ["n1", "n2"]})
    found = [str(problem) for rule in (*FORM_RULES, *NETWORK_RULES) for problem in rule(site)]
    assert any('(n2) is "10.1.0.0/16": other hosts have "10.244.0.0/16"' in text for text in found), found


@pytest.mark.parametrize("hosts", [("n1", "n2"), ("n1", "n2", "localhost")])
def test_all_hosts_override_it(hosts: tuple[str, ...]) -> None:
    setting = Setting("kubernetes_pod_cidr", "10.1.0.0/16", hosts)
    site = Site(settings=[setting], defaults=DEFAULTS, groups={"cluster": ["n1", "n2"]})
    assert not [problem for rule in (*FORM_RULES, *NETWORK_RULES) for problem in rule(site)]


SITE = {"cluster": ["n1"], "mirror": ["m1"]}
ON: dict[str, Any] = {"firewall_enabled": True, "firewall_admin_networks": ["10.84.0.0/24"]}


@pytest.mark.parametrize(
    ("values", "addresses", "expected"),
    [
        (ON, {"n1": "10.84.0.10", "m1": "10.84.0.2"}, []),
        ({**ON, "firewall_enabled": False}, {"n1": "n1.lan", "m1": "10.84.0.2"}, []),
        ({"firewall_enabled": True}, {"n1": "10.84.0.10", "m1": "10.84.0.2"}, ["networks of n1 is empty"]),
        ({**ON, "firewall_admin_networks": []}, {"n1": "10.84.0.10", "m1": "10.84.0.2"}, ["no SSH connection"]),
        (ON, {"n1": "10.84.0.10", "m1": "m1.lan"}, ["host m1 is \"m1.lan\": firewall_enabled is true"]),
        ({**ON, "kubernetes_node_ip": "10.84.0.10"}, {"n1": "n1.lan", "m1": "10.84.0.2"}, []),
        ({**ON, "firewall_admin_networks": ["10.84.0.1"]}, {"n1": "10.84.0.10", "m1": "10.84.0.2"}, ["not a network"]),
    ],
)  # fmt: skip
def test_a_firewall_admits_the_controller_and_all_hosts(
    values: dict[str, Any], addresses: dict[str, str], expected: list[str]
) -> None:
    found = refusals(values, addresses, SITE)
    assert len(found) == len(expected)
    assert all(text in refusal for text, refusal in zip(expected, found, strict=True)), found
