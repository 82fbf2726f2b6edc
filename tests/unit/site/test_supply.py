"""Where packages and images come from, said once and in agreement with the groups."""

from __future__ import annotations

import pytest

from trainyard.site.site_model import Setting, Site
from trainyard.site.supply_rules import SUPPLY_RULES

VENDORS = Setting("supply", "vendors", ("a", "b"))
REGISTRY = Setting("workloads_registry", "registry.site.internal:5000/trainyard", ("a", "b"))
MIRROR = Setting("supply", "mirror", ("a", "b"))


def refusals(site: Site) -> list[str]:
    return [str(problem) for rule in SUPPLY_RULES for problem in rule(site)]


def endpoint(value: str) -> Site:
    return Site(settings=[VENDORS, Setting("control_plane_endpoint", value, ("a",))])


@pytest.mark.parametrize(
    ("site", "expected"),
    [
        (Site(), "variable supply is missing: it selects the source of packages and images. Set it in"),
        (
            Site(settings=[Setting("supply", "vendor", ("a",))]),
            'variable supply (a) is "vendor": not one of the allowed values. Use one of: vendors, mirror.',
        ),
        (
            Site(groups={"mirror": ["m"]}, settings=[MIRROR, Setting("supply", "vendors", ("c",))]),
            'variable supply (c) is "vendors": other hosts have "mirror". Set it once',
        ),
        (
            Site(groups={"mirror": []}, settings=[MIRROR]),
            'variable supply (a, b) is "mirror": the group mirror has no host. Put one host into',
        ),
        (
            Site(groups={"mirror": ["m"]}, settings=[VENDORS]),
            'variable supply (a, b) is "vendors": the group mirror has the host m, which no host would use.',
        ),
        (
            Site(groups={"builders": ["b", "c"]}, settings=[VENDORS, Setting("bundle_builder", "a", ("a",))]),
            '(a) is "a": not a host of the group builders. Put the host into builders. It has: b, c.',
        ),
        (
            Site(settings=[VENDORS, Setting("bundle_builder", "a", ("a",))]),
            "not a host of the group builders. Put the host into builders. It is empty.",
        ),
        (
            Site(
                groups={"mirror": ["m"], "builders": ["a"]}, settings=[MIRROR, Setting("bundle_builder", "a", ("a",))]
            ),
            'is "a": the controller builds and signs the files of a mirror. Remove bundle_builder, and run',
        ),
        (
            Site(settings=[VENDORS], addresses={"a": "192.0.2.10", "b": "10.0.0.1"}),
            'address of the host a is "192.0.2.10": an address for documentation. Set ansible_host',
        ),
        (Site(settings=[VENDORS], addresses={"a": "a.example.com"}), 'address of the host a is "a.example.com"'),
        (endpoint("kubernetes.example.org:6443"), 'is "kubernetes.example.org:6443": a name for documentation. Set it'),
        (endpoint("192.0.2.1:6443"), "a name for documentation"),
        (
            Site(settings=[VENDORS, Setting("workloads_registry", "registry.example.org/trainyard", ("a",))]),
            'is "registry.example.org/trainyard": a name for documentation. Set it',
        ),
        (
            Site(settings=[VENDORS, Setting("containerd_registry_mirrors", {"docker.io": "http://m:5000"}, ("a",))]),
            'variable containerd_registry_mirrors.docker.io (a) is "http://m:5000": not an https URL.',
        ),
    ],
)
def test_refused(site: Site, expected: str) -> None:
    found = refusals(site)
    assert any(expected in text for text in found), found


@pytest.mark.parametrize(
    "site",
    [
        Site(settings=[VENDORS], addresses={"a": "10.0.0.1", "b": "node.site.internal"}),
        Site(groups={"mirror": ["a"]}, settings=[MIRROR]),
        Site(groups={"builders": ["b"]}, settings=[VENDORS, Setting("bundle_builder", "b", ("a", "b"))]),
        Site(groups={"mirror": ["a"]}, settings=[MIRROR, Setting("bundle_builder", "", ("a",))]),
        Site(settings=[VENDORS, Setting("control_plane_endpoint", "api.notexample.org:6443", ("a",))]),
        Site(
            settings=[
                VENDORS,
                REGISTRY,
                Setting("containerd_registry_mirrors", {"docker.io": "https://m:5000"}, ("a",)),
            ]
        ),
    ],
)
def test_accepted(site: Site) -> None:
    assert refusals(site) == []
