"""Forms of values: each accepts what its standard accepts and no more, and roles declare known ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from checkout import ROLES, Role, read_yaml, role_id

from tests.unit.role_forms import ROLE_FORMS
from trainyard.site.forms import FORMS, wrong_form
from trainyard.site.site_model import UNRESOLVED, Setting, Site

VALUES: dict[str, dict[str, list[str]]] = read_yaml(Path(__file__).with_name("forms.yml"))

LIKELY = re.compile(
    r"(_cidrs?|_subnet|_address|_ips?|_node_ip|_endpoint|_image|_registry|_registries|_server|_servers|_domain)$"
)
"""Ends of names whose values have a form."""


def test_each_form_has_ten_values_of_both_kinds() -> None:
    assert VALUES.keys() == FORMS.keys()
    assert {name: (len(each["valid"]), len(each["invalid"])) for name, each in VALUES.items()} == dict.fromkeys(
        FORMS, (10, 10)
    )


def _rows(kind: str) -> list[Any]:
    return [
        pytest.param(name, str(text), id=f"{name}-{n}") for name in VALUES for n, text in enumerate(VALUES[name][kind])
    ]


@pytest.mark.parametrize(("name", "text"), _rows("valid"))
def test_a_value_that_can_work_is_accepted(name: str, text: str) -> None:
    assert FORMS[name].accepts(text), f"{name} refuses {text!r}"


@pytest.mark.parametrize(("name", "text"), _rows("invalid"))
def test_a_value_that_cannot_work_is_refused(name: str, text: str) -> None:
    assert not FORMS[name].accepts(text), f"{name} accepts {text!r}"


@pytest.mark.parametrize("name", FORMS)
def test_a_fault_is_a_clause_and_a_remedy_a_sentence(name: str) -> None:
    remedy = FORMS[name].remedy
    shown = remedy if isinstance(remedy, str) else remedy("x")
    assert FORMS[name].fault[0].islower() and shown[0].isupper() and shown.endswith(".")


def _names(form: Any) -> Iterator[str]:
    if isinstance(form, str):
        yield form
    else:
        for each in form.values() if isinstance(form, dict) else form:
            yield from _names(each)


@pytest.mark.parametrize("role", ROLES, ids=role_id)
def test_a_role_declares_known_forms_of_its_own_variables(role: Role) -> None:
    path = role.path / "meta" / "forms.yml"
    declared = read_yaml(path) if path.exists() else {}
    assert declared.keys() <= role.own_options
    assert {name for form in declared.values() for name in _names(form)} <= FORMS.keys()
    missing = {
        name
        for name, option in role.options.items()
        if name in role.own_options
        and LIKELY.search(name)
        and option.get("type") in ("str", "list")
        and not option.get("choices")
    }
    assert missing - declared.keys() == set(), "declare their forms in meta/forms.yml"


def refusals(**values: Any) -> list[str]:
    settings = [Setting(name, value, ("n1",)) for name, value in values.items()]
    return [str(each) for each in wrong_form(Site(settings=settings, forms=ROLE_FORMS))]


@pytest.mark.parametrize(
    ("values", "where"),
    [
        ({"base_ntp_servers": ["ntp.example.org", "http://a"]}, "base_ntp_servers[1]"),
        ({"base_hosts_entries": {"a_b": "10.1.0.1"}}, 'base_hosts_entries.(key) (n1) is "a_b": not a host name'),
        ({"base_hosts_entries": {"a": "10.1.0"}}, "base_hosts_entries.a"),
        ({"base_apt_sources": [{"name": "x", "uris": ["https://a", "b"]}]}, "base_apt_sources[0].uris[1]"),
        ({"base_disk_free_min_mib": {"var": 1}}, "base_disk_free_min_mib.(key)"),
        ({"kubernetes_pod_cidr": "10.244.1.0/16"}, "not a network. Write 10.244.0.0/16."),
        ({"control_plane_endpoint": "foo bar:6443"}, "not host:port"),
    ],
)
def test_the_wrong_part_is_named(values: dict[str, Any], where: str) -> None:
    (found,) = refusals(**values)
    assert where in found


@pytest.mark.parametrize(
    "values",
    [
        {"bundle_debian_mirror": ""},
        {"kubernetes_resolv_conf": ""},
        {"base_apt_sources": [{"name": "x", "key_url": None, "uris": []}]},
        {"base_ntp_servers": "one"},
        {"base_hosts_entries": []},
        {"kubernetes_node_ip": UNRESOLVED},
        {"kubernetes_node_ip": None},
        {"other": "x"},
    ],
)
def test_values_without_a_fault_of_their_form(values: dict[str, Any]) -> None:
    assert refusals(**values) == []


def test_a_computed_default_is_checked() -> None:
    (found,) = wrong_form(Site(computed={"storage_path": "srv"}, forms=ROLE_FORMS))
    assert "variable storage_path" in str(found) and "not an absolute path" in str(found)
    assert not list(wrong_form(Site(computed={"bundle_debian_mirror": ""}, forms=ROLE_FORMS)))
