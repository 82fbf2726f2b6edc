"""Tests that a boolean or number given as text has the same effect, wherever a role or a playbook reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleError
from ansible.module_utils.common.validation import check_type_bool, check_type_float, check_type_int
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
from ansible.template import Templar, trust_as_template
from checkout import ROLES, ROOT
from test_templates import HOST, _trusted
from typed_uses import TYPED, Use, unconverted, uses

init_plugin_loader()

PAIRS: dict[str, list[tuple[Any, str]]] = {
    "bool": [(False, "false"), (True, "yes")],
    "int": [(40000, "40000")],
    "float": [(1.5, "1.5")],
}
"""Type -> values, each with an equivalent text."""

MODULE = {"bool": check_type_bool, "int": check_type_int, "float": check_type_float, "str": str}
"""Type of a module's argument -> Ansible's conversion."""

USES = uses()
EVALUATED = 0.8
"""Minimum share of uses that can be evaluated: the others need results of tasks."""


def test_there_are_uses() -> None:
    assert len(USES) > 150
    of_program = {name for role in ROLES for name in role.entry_points.get("run", {})}
    # Variables of the program `trainyard` alone are converted by src/trainyard/site/variable_rules.py.
    assert not TYPED.keys() - of_program - {name for use in USES for name in use.names}


@pytest.mark.parametrize("use", USES, ids=str)
def test_each_use_converts(use: Use) -> None:
    found = unconverted(use)
    assert not found, f"{use} uses {found} as it is, and 'false' counts as true. Write `| {TYPED[found[0]]}`."


@pytest.fixture(scope="module")
def values() -> dict[str, Any]:
    """Return the values of all roles, and a host's facts."""
    found: dict[str, Any] = {}
    for role in ROLES:
        found.update(role.defaults)
    for role in ROLES:
        found.update(role.variables)
    looked = {"distribution": "Debian", "gpus": {"on_bus": 5, "gpus": [], "healthy": True, "skew": False, "error": ""}}
    known = {"supply": "vendors", "site_dir": "/site", "group_names": ["cluster"], "ansible_check_mode": False}
    host = {**HOST, "ansible_facts": {**HOST["ansible_facts"], **looked}}
    return {**_trusted(found), **host, **known}


def outcome(use: Use, values: dict[str, Any], name: str, value: Any) -> tuple[str, Any]:
    """Return the result of a use with a value of one variable, as a module gets it; the kind of error if it fails."""
    templar = Templar(loader=DataLoader(), variables={**values, name: value, "ansible_search_path": [str(use.path)]})
    text = trust_as_template(use.text)
    try:
        found = templar.evaluate_conditional(text) if use.condition else templar.template(text)
        return "", MODULE.get(use.sink, lambda same: same)(found)
    except (AnsibleError, TypeError) as error:
        return type(error).__name__, str(error)


def test_each_use_comes_to_the_same_with_a_text(values: dict[str, Any]) -> None:
    evaluated = 0
    cases = [(use, name) for use in USES for name in use.names]
    for use, name in cases:
        pairs = PAIRS[TYPED[name]]
        found = [(outcome(use, values, name, right), outcome(use, values, name, text)) for right, text in pairs]
        if all(right[0] for right, _ in found):
            # Another value is missing; test_each_use_converts checks the form.
            continue
        evaluated += 1
        for (right, wrong), (value, text) in zip(found, pairs, strict=True):
            assert repr(wrong) == repr(right), f"{use}: {name} is {text!r}, and not {value!r}"
    print(f"\n{evaluated} of {len(cases)} uses evaluated")
    assert evaluated > EVALUATED * len(cases)


@pytest.mark.parametrize(
    ("text", "condition", "sink", "good"),
    [
        ("base_swap_off", True, "", False),
        ("not base_swap_off", True, "", False),
        ("not base_swap_off | bool", True, "", True),
        ("base_swap_off | default(true) | bool", True, "", True),
        ("base_swap_off | bool | default(true)", True, "", True),
        ("base_swap_off is defined", True, "", True),
        ("{{ base_swap_off }}", False, "", False),
        ("{{ base_swap_off }}", False, "bool", True),
        ("{{ base_swap_off }}", False, "str", False),
        ("off: {{ base_swap_off }}", False, "", False),
        ("{% if base_swap_off %}x{% endif %}", False, "", False),
        ("{{ 1 if base_swap_off else 2 }}", False, "int", False),
        ("{{ base_swap_off | ternary(1, 2) }}", False, "int", False),
        ("{{ hostvars['a'].base_swap_off | ternary(1, 2) }}", False, "int", False),
        ("{{ hostvars['a']['base_swap_off'] | bool }}", False, "", True),
        ("{{ groups.all | map('extract', hostvars, 'base_swap_off') | list }}", False, "", False),
        ("{{ x | map(attribute='lab_gpus', default=0) | sum }}", False, "", False),
        ("{{ x | map(attribute='lab_gpus', default=0) | map('int') | sum }}", False, "", True),
        ("{{ x | selectattr('base_swap_off') }}", False, "", False),
        ("{{ base_command_timeout }}", False, "", False),
        ("{{ base_command_timeout }}", False, "int", True),
        ("{{ base_command_timeout }} s", False, "", True),
        ("{{ 'a' ~ base_command_timeout }}", False, "", True),
        ("{{ base_command_timeout + 1 }}", False, "int", False),
        ("{{ base_command_timeout | to_json }}", False, "", False),
        ("base_command_timeout > 5", True, "", False),
        ("base_command_timeout | int > 5", True, "", True),
    ],
)
def test_forms(text: str, condition: bool, sink: str, good: bool) -> None:
    use = Use(Path(ROOT / "roles" / "base" / "tasks" / "main.yml"), ("x",), text, sink, condition)
    assert (not unconverted(use)) is good
