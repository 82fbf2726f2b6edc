"""Texts as the types that are declared for them."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.site.collect import as_declared
from trainyard.site.site_model import UNRESOLVED, Option
from trainyard.site.variable_rules import typed


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("false", "bool", False),
        ("False", "bool", False),
        ("no", "bool", False),
        ("off", "bool", False),
        ("0", "bool", False),
        (0, "bool", False),
        (False, "bool", False),
        ("true", "bool", True),
        ("Yes", "bool", True),
        (1, "bool", True),
        ("5", "int", 5),
        ("-1", "int", -1),
        (5, "int", 5),
        ("0.5", "float", 0.5),
        (2, "float", 2.0),
        ("2", "float", 2.0),
    ],
)
def test_a_text_becomes_its_type(value: object, kind: str, expected: object) -> None:
    found = typed(value, kind)
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        # Ansible's filter takes these for false, and its modules for true.
        *[(word, "bool") for word in ("y", "t", "Y", "1.0", 1.0, 2, "flase", "", " true", [], None)],
        # A template would write them as they are.
        *[(word, "int") for word in ("5.0", "1e3", "007", "+5", " 5", "5 ", "5_0", "\u0665", "", True, 5.0, None)],
        *[(word, "float") for word in ("nan", "inf", "1e999", "x", "", True, None, [])],
    ],
)
def test_another_text_is_refused(value: object, kind: str) -> None:
    with pytest.raises(ValueError, match=r"not of the type|could not convert"):
        typed(value, kind)


CLAIMS = Option("list", elements="dict", options={"shared": Option("bool"), "size": Option("int"), "name": Option()})


@pytest.mark.parametrize(
    ("value", "option", "expected"),
    [
        ("false", Option("bool"), False),
        ("maybe", Option("bool"), "maybe"),
        (None, Option("bool"), None),
        (UNRESOLVED, Option("bool"), UNRESOLVED),
        ("5", Option("str"), "5"),
        ("false", Option("raw"), "false"),
        (["1", "2"], Option("list", elements="int"), [1, 2]),
        ([{"shared": "no", "size": "5"}], CLAIMS, [{"shared": False, "size": 5}]),
        ([{"name": "1", "own": "no"}], CLAIMS, [{"name": "1", "own": "no"}]),
        ({"on": "false"}, Option("dict", options={"on": Option("bool")}), {"on": False}),
        ("text", CLAIMS, "text"),
    ],
)  # fmt: skip
def test_rules_get_declared_types(value: Any, option: Option, expected: Any) -> None:
    found = as_declared(value, option)
    assert found == expected and repr(found) == repr(expected)
