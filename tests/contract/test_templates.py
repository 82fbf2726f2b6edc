"""Tests that every template can be parsed, uses only existing names, and renders if the roles' own values suffice."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import filter_loader, init_plugin_loader, test_loader
from ansible.template import Templar, trust_as_template
from checkout import DECLARED, ROLES, ROOT, Role
from jinja2 import defaults, meta, nodes

init_plugin_loader()

TEMPLATES = sorted((ROOT / "roles").glob("*/templates/**/*.j2"))

MAGIC = {
    *("ansible_facts", "ansible_check_mode", "ansible_host", "ansible_play_hosts", "groups"),
    *("group_names", "hostvars", "inventory_hostname", "inventory_dir", "playbook_dir", "role_path", "item", "omit"),
    *("lookup", "q", "query", "range", "undef", "now", "namespace", "dict"),
}
"""Names provided by Ansible or Jinja."""

HOST = {
    "ansible_facts": {
        "default_ipv4": {"address": "192.0.2.10"},
        "distribution_release": "trixie",
        "service_mgr": "systemd",
    },
    "ansible_host": "192.0.2.10",
    "groups": {"control_plane": ["cp1"], "cluster": ["cp1"], "workers": [], "mirror": [], "all": ["cp1"]},
    "hostvars": {"cp1": {"ansible_host": "192.0.2.10"}},
    "inventory_hostname": "cp1",
}
"""Known values of a host when a template is rendered."""


def _id(path: Path) -> str:
    return str(path.relative_to(ROOT / "roles"))


@cache
def _role(path: Path) -> Role:
    return next(role for role in ROLES if role.path in path.parents)


@cache
def _texts(role: Role) -> str:
    """Return everything in a role that can set a variable, as text."""
    files = [*(role.path / "vars").glob("*.yml"), *(role.path / "templates").rglob("*.j2")]
    return "\n".join([role.task_text, *(path.read_text(encoding="utf-8") for path in files)])


def _tree(path: Path) -> nodes.Template:
    environment = jinja2.Environment(autoescape=False)
    tree = environment.parse(path.read_text(encoding="utf-8"))
    # Jinja's search for variables fails at an unknown filter; a test below checks Ansible's filters.
    for kind, known in ((nodes.Filter, environment.filters), (nodes.Test, environment.tests)):
        for node in tree.find_all(kind):
            known.setdefault(node.name, str)
    return tree


def _variables(path: Path) -> set[str]:
    return meta.find_undeclared_variables(_tree(path)) - MAGIC


@pytest.mark.parametrize("path", TEMPLATES, ids=_id)
def test_variables_exist(path: Path) -> None:
    role = _role(path)
    for name in _variables(path):
        # Set by the role itself: a registered result, a fact, a loop variable, or `vars` of the template.
        set_here = re.search(rf"\b{name}['\"]?\s*[:=]|(register|loop_var): \"?{name}\b", _texts(role))
        assert name in DECLARED or name in role.variables or set_here, f"{name} is set nowhere"


@pytest.mark.parametrize("path", TEMPLATES, ids=_id)
def test_filters_and_tests_exist(path: Path) -> None:
    tree = _tree(path)
    kinds = ((nodes.Filter, defaults.DEFAULT_FILTERS, filter_loader), (nodes.Test, defaults.DEFAULT_TESTS, test_loader))
    for kind, known, loader in kinds:
        for node in tree.find_all(kind):
            assert node.name in known or loader.get(node.name) is not None, f"line {node.lineno}: {node.name}"


def _values(role: Role) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for other in ROLES:
        values.update(other.defaults)
    # An included template is searched in the role of the including one.
    return _trusted({**values, **role.variables}) | HOST | {"ansible_search_path": [str(role.path)]}


def _trusted(value: Any) -> Any:
    if isinstance(value, str):
        return trust_as_template(value)
    if isinstance(value, dict):
        return {key: _trusted(item) for key, item in value.items()}
    return [_trusted(item) for item in value] if isinstance(value, list) else value


INPUTS = ("lookup(", "undef(", "[supply]", "supply ==", "ansible_inventory_sources")
"""Text in values that depend on a lookup, the inventory or the call of a playbook."""


def _feasible(names: set[str], values: dict[str, Any]) -> bool:
    """Return whether the variables, and those in their values, need no lookup, input or task."""
    seen: set[str] = set()
    todo = set(names)
    while todo:
        name = todo.pop()
        seen.add(name)
        text = str(values.get(name, "undef("))
        if any(input_ in text for input_ in INPUTS):
            return False
        used = {word for word in re.findall(r"\b\w+\b", text) if word in values or word.startswith("__")}
        todo |= used - seen - HOST.keys()
    return True


def test_renders_with_the_defaults() -> None:
    """Only templates that need nothing but defaults and facts are rendered; others need results of tasks."""
    rendered = 0
    for path in TEMPLATES:
        values = _values(_role(path))
        looped = "item" in meta.find_undeclared_variables(_tree(path))
        if not looped and _feasible(_variables(path), values):
            text = trust_as_template(path.read_text(encoding="utf-8"))
            assert str(Templar(loader=DataLoader(), variables=values).template(text)).strip(), _id(path)
            rendered += 1
    assert rendered or not TEMPLATES


def test_defaults_and_constants_are_used() -> None:
    """A default or constant that no task, template, other variable or program reads is unused."""
    files = [path for folder in ("playbooks", "roles") for path in (ROOT / folder).rglob("*.yml")]
    files = [path for path in files if path.name != "argument_specs.yml"]
    text = "\n".join(path.read_text(encoding="utf-8") for path in [*files, *TEMPLATES])
    # Search the text once, not once per name.
    used = set(re.findall(r"\b\w+\b(?!:)", text))
    for role in ROLES:
        # The program's variables are a separate entry point; the tests of src/trainyard/schedule compare the names.
        program = role.entry_points.get("run", {})
        for name in {*role.defaults, *role.variables} - program.keys():
            assert name in used, f"{name} of {role.name} is never used"
