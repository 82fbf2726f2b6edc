"""Tests of the ports that roles declare, and of the page that is generated from them."""

from __future__ import annotations

from typing import Any

import pytest
from checkout import ROOT, load, read_yaml

PROGRAM = load(ROOT / "tools" / "ports.py")
PORTS: list[dict[str, Any]] = PROGRAM.ports(ROOT / "roles")
GROUPS = {"cluster", "control_plane", "mirror"}
REQUIRED, OPTIONAL = {"port", "group", "program", "from", "for"}, {"protocol", "variable", "node_port"}


def test_the_page_is_current() -> None:
    page = PROGRAM.TARGET.read_text(encoding="utf-8")
    assert page == PROGRAM.render(ROOT / "roles"), "run `python3 tools/ports.py`"


@pytest.mark.parametrize("port", PORTS, ids=lambda port: f"{port['group']}-{port['port']}")
def test_a_port_is_complete(port: dict[str, Any]) -> None:
    assert REQUIRED <= port.keys() <= REQUIRED | OPTIONAL
    assert isinstance(port["port"], int) and port["group"] in GROUPS and port["for"]
    assert port.get("protocol", "udp") == "udp", "tcp is the default"
    assert set(port["from"]) <= PROGRAM.SOURCES.keys()
    # The check of a host finds programs by their TCP sockets.
    assert not (port["program"] and port.get("protocol"))


def test_no_port_is_declared_twice() -> None:
    found = [(port["group"], port["port"]) for port in PORTS]
    assert len(found) == len(set(found))


def test_a_variable_has_this_default() -> None:
    for port in PORTS:
        if "variable" in port:
            role = port["variable"].partition("_")[0]
            defaults = read_yaml(ROOT / "roles" / role / "defaults" / "main.yml")
            assert defaults[port["variable"]] == port["port"], port
