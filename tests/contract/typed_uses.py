"""Find each place in roles and playbooks that reads a variable declared as bool, int or float, and its consumer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from ansible.playbook.task import Task
from ansible.plugins.loader import fragment_loader, module_loader
from ansible.utils.plugin_docs import get_docstring
from checkout import ROLES, ROOT, read_yaml
from jinja2 import nodes

from trainyard.site.variable_rules import OF_PLAYBOOKS

KINDS = ("bool", "int", "float")

TYPED: dict[str, str] = {
    **{name: option["type"] for role in ROLES for name, option in role.options.items() if option["type"] in KINDS},
    **{name: option.type for name, option in OF_PLAYBOOKS.items() if option.type in KINDS},
}
"""Variable -> its declared type."""

CONDITIONS = ("when", "failed_when", "changed_when", "until", "that")
"""Keys whose values are expressions without braces."""

FREE = (
    "ansible.builtin.set_fact",
    "ansible.builtin.assert",
    "ansible.builtin.debug",
    "ansible.builtin.import_playbook",
)
"""Actions whose arguments keep the type of the template's result."""

CONVERTS = ("gpu_fault", "gpu_units")
"""Filters of the project that convert their input."""

TAKES = {"bool": ("bool",), "int": ("int", "float", "str"), "float": ("float", "str")}
"""Declared type -> types of module arguments for which the text and the value are equivalent."""


@dataclass(frozen=True)
class Use:
    """One text of a file with at least one typed variable.

    :param keys: path to it in a YAML file.
    :param sink: type of the consumer of the whole value, a module's argument or a task's keyword; else "".
    :param condition: whether it is an expression without braces.
    """

    path: Path
    keys: tuple[str, ...]
    text: str
    sink: str = ""
    condition: bool = False

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}: {'.'.join(self.keys[-3:])}: {self.text if self.keys else ''}".strip()

    @property
    def names(self) -> list[str]:
        """Return the typed variables whose names are in the text."""
        return [name for name in dict.fromkeys(re.findall(r"[a-z]\w+", self.text)) if name in TYPED]


def uses() -> list[Use]:
    """Return all uses."""
    return [each for path in _files() for each in _of_file(path) if each.names]


def _files() -> Iterator[Path]:
    yield from sorted((ROOT / "playbooks").rglob("*.yml"))
    yield from sorted((ROOT / "inventories").rglob("*.yml"))
    for role in ROLES:
        yield from (path for path in sorted(role.path.rglob("*.yml")) if path.name != "argument_specs.yml")
        yield from sorted(role.path.rglob("*.j2"))


def _of_file(path: Path) -> Iterator[Use]:
    if path.suffix == ".j2":
        yield Use(path, (), path.read_text(encoding="utf-8"))
        return
    yield from _texts(path, (), read_yaml(path))


def _texts(path: Path, keys: tuple[str, ...], value: Any) -> Iterator[Use]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(path, (*keys, str(key)), inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(path, keys, inner)
    elif isinstance(value, str):
        condition = bool(keys) and keys[-1] in CONDITIONS
        if condition or "{{" in value or "{%" in value:
            yield Use(path, keys, value, "" if condition else sink(keys), condition)


def sink(keys: Sequence[str]) -> str:
    """Return the type of the module's argument or task's keyword at a path, or ""."""
    if "vars" in keys or not keys:
        return ""
    module = keys[-2] if len(keys) > 1 else ""
    if module not in FREE and ((ROOT / "library" / f"{module}.py").exists() or module.count(".") > 1):
        return _arguments(module).get(keys[-1], "")
    attribute = Task.fattributes.get(keys[-1])
    return str(attribute.isa) if attribute and module in ("", "block", "rescue", "always") else ""


@cache
def _arguments(module: str) -> dict[str, str]:
    """Return argument -> type of a module, from its documentation; the contract tests compare that with the code."""
    own = ROOT / "library" / f"{module}.py"
    fragment_loader.add_directory(str(ROOT / "plugins" / "doc_fragments"))
    found = str(own) if own.exists() else module_loader.find_plugin(module)
    document = (get_docstring(found, fragment_loader, is_module=True)[0] if found else None) or {}
    options = document.get("options") or {}
    return {
        alias: option.get("type", "str")
        for name, option in options.items()
        for alias in (name, *option.get("aliases", ()))
    }


def unconverted(use: Use) -> list[str]:
    """Return the typed variables that the text uses without a conversion to their type."""
    tree = jinja2.Environment().parse(f"{{{{ ({use.text}) }}}}" if use.condition else use.text)
    parents: dict[int, nodes.Node] = {}
    todo: list[nodes.Node] = [tree]
    for node in todo:
        for child in node.iter_child_nodes():
            parents[id(child)] = node
            todo.append(child)
    return [
        name for node in todo if (name := _name(node, parents)) and not _is_converted(node, TYPED[name], parents, use)
    ]


def _name(node: nodes.Node, parents: dict[int, nodes.Node]) -> str:
    """Return the typed variable that a node reads, by its name or as a key of a host's variables; empty if none."""
    given = {nodes.Name: "name", nodes.Getattr: "attr", nodes.Const: "value"}.get(type(node), "")
    name = getattr(node, given, "") if given else ""
    if not isinstance(name, str) or name not in TYPED:
        return ""
    if isinstance(node, nodes.Const) and not isinstance(
        parents[id(node)], (nodes.Filter, nodes.Keyword, nodes.Call, nodes.Getitem)
    ):
        # It is a word in a list, or the key of a dictionary.
        return ""
    # An artefact of the bundle may have the name of a variable.
    artefact = isinstance(node, nodes.Getattr) and any(
        each.name == "bundle_artefacts" for each in node.find_all(nodes.Name)
    )
    return "" if artefact else name


def _is_converted(node: nodes.Node, kind: str, parents: dict[int, nodes.Node], use: Use) -> bool:
    while True:
        child, node = node, parents[id(node)]
        if isinstance(node, nodes.Keyword) or (isinstance(node, nodes.Getitem) and node.arg is child):
            continue
        if isinstance(node, nodes.Filter):
            # A fallback replaces the value, so the search continues.
            if node.name == "default" or (node.name == "map" and node.node is not child):
                continue
            if node.name in CONVERTS:
                return True
            if node.name == "map":
                return bool(node.args) and isinstance(node.args[0], nodes.Const) and node.args[0].value == kind
            return node.node is child and (node.name == kind or (kind != "bool" and node.name == "string"))
        if isinstance(node, nodes.CondExpr) and node.test is not child:
            continue
        if isinstance(node, nodes.Test):
            return node.node is child and node.name in ("defined", "undefined", "none")
        if isinstance(node, nodes.Output):
            texts = [
                each for each in node.nodes if not (isinstance(each, nodes.TemplateData) and not each.data.strip())
            ]
            # Inside a text, "5" and 5 are equivalent.
            is_text = kind != "bool" and not use.condition and (len(texts) > 1 or use.path.suffix == ".j2")
            return is_text or (len(texts) == 1 and use.sink in TAKES[kind])
        return kind != "bool" and isinstance(node, nodes.Concat)
