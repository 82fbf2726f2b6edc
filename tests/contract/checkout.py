"""The checkout as data, for the contract tests: roles with their files and declarations."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]


def read_yaml(path: Path) -> Any:
    """Return a YAML file as plain data; None if it does not exist."""
    if not path.exists():
        return None
    return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)


def load(path: Path) -> Any:
    """Return a file of the checkout as a module: programs of `tools` and modules of `library` are in no package."""
    name = "_".join(path.relative_to(ROOT).with_suffix("").parts)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Role:
    """One role and its declared interface."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @cached_property
    def defaults(self) -> dict[str, Any]:
        return read_yaml(self.path / "defaults" / "main.yml") or {}

    @cached_property
    def variables(self) -> dict[str, Any]:
        """Return the internal constants of `vars/`."""
        found: dict[str, Any] = {}
        for path in sorted((self.path / "vars").glob("*.yml")):
            found.update(read_yaml(path) or {})
        return found

    @cached_property
    def entry_points(self) -> dict[str, dict[str, Any]]:
        document = read_yaml(self.path / "meta" / "argument_specs.yml") or {}
        return {name: entry.get("options") or {} for name, entry in document.get("argument_specs", {}).items()}

    @cached_property
    def options(self) -> dict[str, dict[str, Any]]:
        """Return the options of all entry points; for an option of several the main one wins."""
        found: dict[str, dict[str, Any]] = {}
        for options in [*self.entry_points.values(), self.entry_points.get("main", {})]:
            found.update(options)
        return found

    @property
    def own_options(self) -> set[str]:
        return {name for name in self.options if name.startswith(f"{self.name}_")}

    @cached_property
    def readme(self) -> str:
        path = self.path / "README.md"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    @cached_property
    def task_text(self) -> str:
        """Return all tasks and handlers as text."""
        files = [*sorted((self.path / "tasks").rglob("*.yml")), *sorted((self.path / "handlers").rglob("*.yml"))]
        return "\n".join(path.read_text(encoding="utf-8") for path in files)


ROLES = [Role(path) for path in sorted((ROOT / "roles").iterdir()) if path.is_dir()]

DECLARED = {name for role in ROLES for name in {*role.options, *role.defaults}}
"""All public variables of all roles."""


def role_id(role: Role) -> str:
    return role.name
