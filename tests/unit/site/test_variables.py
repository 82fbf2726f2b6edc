"""One refusal a row: names, types, versions and preflight errors."""

from __future__ import annotations

import pytest

from trainyard.site.site_model import UNRESOLVED, Option, Setting, Site
from trainyard.site.variable_rules import OF_PLAYBOOKS, VARIABLE_RULES, fits, meant, unsafe_texts

OPTIONS = {
    **OF_PLAYBOOKS,
    "base_packages": Option(type="list", elements="str"),
    "base_mode": Option(type="str", choices=("strict", "lax")),
    "base_retries": Option(type="int"),
    "base_secret": Option(type="int", no_log=True),
    "base_sources": Option(
        type="list", elements="dict", options={"name": Option(required=True), "port": Option(type="int")}
    ),
    "control_plane_endpoint": Option(),
    "control_plane_ignore_preflight_errors": Option(type="list", elements="str"),
    "kubernetes_version": Option(),
    "base_entries": Option(type="dict"),
    "base_certificates": Option(type="list", elements="dict"),
    "base_folder": Option(type="path"),
}
SITE = {
    "options": OPTIONS,
    "roles": frozenset(("base", "control_plane", "kubernetes")),
    "locked": {"kubernetes_version": "kubernetes"},
    "versions": {"kubernetes": "1.36.3"},
}


def refusals(name: str, value: object) -> list[str]:
    site = Site(settings=[Setting(name, value, ("cp1",), "group_vars/all/x.yml:3")], **SITE)
    return [str(problem) for rule in VARIABLE_RULES for problem in rule(site)]


@pytest.mark.parametrize(
    ("name", "value", "fault", "remedy"),
    [
        ("base_pakages", ["a"], "the role base has no such variable", "Did you mean base_packages?"),
        ("control_plane_endpint", "a:1", "the role control_plane has no such", "Did you mean control_plane_endpoint?"),
        ("base_xyzzyplugh", UNRESOLVED, "the role base has no such variable", "Remove it"),
        ("kubernets_version", "1.36.3", "looks misspelt", "Did you mean kubernetes_version?"),
        ("site_object", "false", "looks misspelt", "Did you mean site_objects?"),
        ("site_host", "w1", "looks misspelt", "Did you mean site_hosts?"),
        ("sites_hosts", "w1", "looks misspelt", "Did you mean site_hosts?"),
        ("site_objects", "flase", 'is "flase": not true or false', "Write true or false."),
        ("base_packages", "curl", "not a list", "Write a list."),
        ("base_packages", ["a", ["b"]], "[1] (group_vars/all/x.yml:3, cp1) is ['b']: not a string", "quotes"),
        ("base_retries", "many", "not a whole number", "Write a whole number."),
        ("base_retries", True, "not a whole number", "Write a whole number."),
        ("base_mode", "loose", "not one of the allowed values", "Use one of: strict, lax."),
        ("kubernetes_version", 1.36, "is 1.36: not a string", "Put it in quotes."),
        ("base_sources", [{"name": "a", "prot": 1}], "[0].prot", "Did you mean port?"),
        ("base_sources", [{"port": 1}], "the key name is missing", "Add name to it."),
        ("base_sources", [{"name": "a", "port": "x"}], "[0].port", "Write a whole number."),
        ("kubernetes_version", "1.35.0", 'is "1.35.0": the lock has only kubernetes 1.36.3', 'Use "1.36.3"'),
        ("control_plane_ignore_preflight_errors", ["all"], "would hide", "Name the checks"),
        ("control_plane_ignore_preflight_errors", ["Mem", "ALL"], "would hide", "Name the checks"),
    ],
)
def test_refused(name: str, value: object, fault: str, remedy: str) -> None:
    found = refusals(name, value)
    assert found
    assert name in found[0]
    assert "cp1" in found[0]
    assert fault in found[0]
    assert remedy in found[0]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("base_packages", []),
        ("base_packages", None),
        ("base_packages", UNRESOLVED),
        ("base_retries", "3"),
        ("base_mode", "lax"),
        ("base_sources", [{"name": "a"}]),
        ("kubernetes_version", "v1.36.3"),
        ("my_own_variable", "x"),
        # In an inventory it may be anybody's own.
        ("state", "restarted"),
        ("site_hosts", "w1,w2"),
        ("site_hosts", ["w1"]),
        ("site_objects", "false"),
        ("ansible_user", "root"),
        ("__base_internal", 1),
        ("control_plane_ignore_preflight_errors", ["SystemVerification"]),
    ],
)
def test_accepted(name: str, value: object) -> None:
    assert refusals(name, value) == []


def test_a_word_of_a_call_that_nothing_reads() -> None:
    (problem,) = meant({"state": "restarted", "site_hosts": "w1"})
    assert str(problem).startswith('variable state is "restarted": nothing reads it. Did you mean workloads_state (of')


def test_secrets_are_not_shown() -> None:
    (declared,) = refusals("base_secret", "hunter2")
    (unknown,) = refusals("base_admin_password", "hunter2")
    assert "hunter2" not in declared + unknown
    assert "(hidden)" in declared
    assert "(hidden)" in unknown


def test_without_a_lock_no_version_is_refused() -> None:
    site = Site(settings=[Setting("kubernetes_version", "1.1.1")], **{**SITE, "versions": None})
    assert [problem for rule in VARIABLE_RULES for problem in rule(site)] == []


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("yes", "bool", True),
        (1, "bool", True),
        ("maybe", "bool", False),
        ("0.5", "float", True),
        (False, "float", False),
        (3, "str", True),
        ({}, "str", False),
        ("/x", "path", True),
        ({"a": 1}, "dict", True),
        ("a=1", "dict", False),
        ((1,), "list", True),
        (object(), "raw", True),
    ],
)
def test_fits(value: object, kind: str, expected: bool) -> None:
    assert fits(value, kind) is expected


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("control_plane_endpoint", "a:1\n10.0.0.1 evil", 'is "a:1\n10.0.0.1 evil": more than one line'),
        (
            "base_sources",
            [{"name": "../../x"}],
            'base_sources[0].name (group_vars/all/x.yml:3, cp1) is "../../x": a path that leads up',
        ),
        ("base_entries", {"a\n1.2.3.4 b": "1.1.1.1"}, "more than one line"),
        ("base_packages", ["a\rb"], "base_packages[0]"),
    ],
)
def test_texts_that_would_change_files_and_paths_are_refused(name: str, value: object, expected: str) -> None:
    site = Site(settings=[Setting(name, value, ("cp1",), "group_vars/all/x.yml:3")], **SITE)
    found = [str(problem) for problem in unsafe_texts(site)]
    assert len(found) == 1 and expected in found[0], found


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("base_certificates", [{"content": "line\nline\n"}]),
        ("base_folder", "/a/../b"),
        ("control_plane_endpoint", "a..b:1"),
    ],
)
def test_texts_that_are_fine(name: str, value: object) -> None:
    assert not list(unsafe_texts(Site(settings=[Setting(name, value, ("cp1",))], **SITE)))
