"""The site's proxy: its exceptions, its variables, and the refusal of a password that is not encrypted."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.site.forms import login_of
from trainyard.site.proxies import environment, exceptions, password_outside_vault
from trainyard.site.site_model import UNRESOLVED, Setting, Site

URL = "http://proxy.example.org:3128"
LOGIN = "http://user:secret@proxy.example.org:3128"


def test_exceptions_have_one_order_and_no_repetition() -> None:
    hosts = ["w1", "10.1.0.21", "CP1.example.org", "cp1.example.org", "fd00:0::1", "", "not a host", "a_b"]
    networks = ["10.244.0.0/16", "", "10.96.0.0/16"]
    found = exceptions(hosts, networks, "cluster.local", [".corp", "w1"])
    assert found == exceptions(list(reversed(hosts)), networks, "cluster.local", ["w1", ".corp"])
    assert found == [
        *(".cluster.local", ".corp", ".svc", "10.1.0.21", "10.244.0.0/16", "10.96.0.0/16", "127.0.0.1"),
        *("169.254.169.254", "::1", "cp1.example.org", "fd00::1", "localhost", "w1"),
    ]


@pytest.mark.parametrize(
    ("proxy", "expected"),
    [
        ({}, {}),
        ({"none": ["a"]}, {}),
        ({"http": "", "https": None}, {}),
        ({"https": URL}, {"HTTPS_PROXY": URL, "NO_PROXY": "a,b"}),
        ({"http": URL, "https": LOGIN}, {"HTTP_PROXY": URL, "HTTPS_PROXY": LOGIN, "NO_PROXY": "a,b"}),
    ],
)
def test_variables_of_a_proxy(proxy: dict[str, Any], expected: dict[str, str]) -> None:
    assert environment(proxy, ["a", "b"]) == expected


@pytest.mark.parametrize(
    ("text", "login"),
    [
        (LOGIN, ("user", "secret")),
        ("user:secret@proxy", ("user", "secret")),
        ("http://user@proxy", ("user", "")),
        (URL, ("", "")),
        (None, ("", "")),
    ],
)
def test_a_login_in_a_url(text: str | None, login: tuple[str, str]) -> None:
    assert login_of(text) == login


@pytest.mark.parametrize(
    ("value", "sealed", "keys"),
    [
        ({"https": LOGIN}, frozenset(), [".https"]),
        ({"http": LOGIN, "https": LOGIN}, frozenset({"https"}), [".http"]),
        ({"http": LOGIN, "https": LOGIN}, frozenset({"http", "https"}), []),
        ({"https": "http://user@proxy"}, frozenset(), []),
        ({"https": URL, "none": ["a"]}, frozenset(), []),
        ("text", frozenset(), []),
        (UNRESOLVED, frozenset(), []),
    ],
)
def test_a_password_outside_a_vault_is_refused_and_not_shown(
    value: Any, sealed: frozenset[str], keys: list[str]
) -> None:
    found = list(password_outside_vault(Site(settings=[Setting("base_proxy", value, ("w1",), sealed=sealed)])))
    assert [each.subject for each in found] == [f"variable base_proxy{key}" for key in keys]
    assert not [each for each in found if "secret" in str(each) or "ansible-vault" not in str(each)]
