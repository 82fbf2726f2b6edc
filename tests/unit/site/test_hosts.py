"""One refusal a row: groups, addresses and the controller's user."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.role_forms import ROLE_FORMS
from trainyard.site.forms import FORM_RULES
from trainyard.site.host_rules import HOST_RULES
from trainyard.site.site_model import CONTROLLER_PYTHON, Setting, Site, named

GOOD = {"control_plane": ["a"], "workers": ["b"], "cluster": ["a", "b"], "mirror": ["m"]}


def refusals(site: Site) -> list[str]:
    site = replace(site, forms=ROLE_FORMS)
    return [str(problem) for rule in (*FORM_RULES, *HOST_RULES) for problem in rule(site)]


@pytest.mark.parametrize(
    ("site", "expected"),
    [
        (
            Site(groups={**GOOD, "control_plane": []}),
            "group control_plane is empty: a cluster needs a control plane. Put one or three hosts in it.",
        ),
        (
            Site(groups={**GOOD, "control_plane": ["a", "c"]}),
            "group control_plane is 2 hosts (a, c): an even number tolerates no more failures than one host less. "
            "Use 1 or 3 hosts.",
        ),
        (
            Site(groups={**GOOD, "workers": ["a", "b"]}),
            "host a is in the groups control_plane and workers: the two exclude each other. "
            "Take it out of control_plane or out of workers. For pods on control plane hosts, take it out of workers "
            "and set control_plane_schedulable: true.",
        ),
        (
            Site(groups={**GOOD, "mirror": ["m", "n"]}),
            "group mirror is 2 hosts (m, n): a site has one mirror or none. Keep one of them.",
        ),
        (
            Site(groups={**GOOD, "controllers": ["m", "n"]}),
            "group controllers is 2 hosts (m, n): a site has one schedule or none. Keep one of them. "
            "Until then no schedule is set up, and an existing one stays unchanged.",
        ),
        (
            Site(groups={**GOOD, "controllers": ["b"]}),
            "host b is in the groups controllers and cluster: the two exclude each other. "
            "Take it out of controllers or out of cluster.",
        ),
        (
            Site(groups=GOOD, addresses={"a": "10.0.0.1", "b": "10.0.0.2", "m": "10.0.0.1"}),
            'address of the hosts a, m is "10.0.0.1": each host needs its own address. '
            "Correct ansible_host, or keep one name and put it into all the groups.",
        ),
        (
            Site(groups={**GOOD, "instance_i_01": ["b"], "instance_i_02": ["a"], "instance_i_03": ["b"]}),
            "host b is 2 instances (i-01, i-03): their tag Name makes them one host, so only one would be configured. "
            "Give each instance a different tag Name.",
        ),
        (
            Site(groups={**GOOD, "lab_hosts": ["a", "b"]}, is_root=False),
            "group lab_hosts is 2 hosts, and the controller's user is not root: the lab's containers, network and "
            "firewall rules need root. Run it as root, or use an inventory of real hosts.",
        ),
    ],
)
def test_refused(site: Site, expected: str) -> None:
    assert refusals(site) == [expected]


@pytest.mark.parametrize(
    "site",
    [
        Site(groups=GOOD, addresses={"a": "10.0.0.1", "b": "10.0.0.2"}, is_root=False),
        Site(groups={**GOOD, "lab_hosts": ["a"]}),
        Site(groups={**GOOD, "controllers": ["m"]}),
        # Nodes that somebody else has made.
        Site(groups={**GOOD, "lab_hosts": ["a"]}, settings=[Setting("lab_managed", False)], is_root=False),
        Site(groups={"control_plane": ["a", "b", "c"]}),
        # A cluster host may be the mirror.
        Site(groups={**GOOD, "mirror": ["b"]}),
    ],
)
def test_accepted(site: Site) -> None:
    assert refusals(site) == []


def test_many_hosts_are_counted() -> None:
    assert named(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"


@pytest.mark.parametrize("address", ["10.244.9.9.1", "10.1.0", "10.1.0.300", "a b", "a_b", "a\nb", "../x"])
def test_what_is_no_address_is_refused(address: str) -> None:
    assert any(
        "neither an address nor a DNS name" in text for text in refusals(Site(groups=GOOD, addresses={"a": address}))
    )


@pytest.mark.parametrize("address", ["10.1.0.3", "fd00::1", "node1", "Node1.site.example"])
def test_addresses_and_names_are_accepted(address: str) -> None:
    assert refusals(Site(groups=GOOD, addresses={"a": address})) == []


@pytest.mark.parametrize("name", ["CP_1", "cp_1", "CP1", "-cp", "cp1.", "x" * 64])
def test_a_node_whose_name_is_no_dns_name_is_refused(name: str) -> None:
    groups = {"control_plane": [name], "cluster": [name]}
    assert any("the name of a node must be a DNS name" in text for text in refusals(Site(groups=groups)))
    assert refusals(Site(groups=groups, settings=[Setting("kubernetes_node_name", "cp1", (name,))])) == []
    wrong = Site(
        groups={"control_plane": ["a"], "cluster": ["a"]}, settings=[Setting("kubernetes_node_name", name, ("a",))]
    )
    assert any("variable kubernetes_node_name (a)" in text for text in refusals(wrong))


@pytest.mark.parametrize(("python", "refused"), [(None, 0), (CONTROLLER_PYTHON, 0), ("", 1), ("/usr/bin/python3", 1)])
def test_a_localhost_of_the_inventory_has_the_python_of_ansible(python: str | None, refused: int) -> None:
    found = [text for text in refusals(Site(groups=GOOD, controller_python=python)) if "host localhost" in text]
    assert len(found) == refused
