#!/usr/bin/env python3
"""Writes docs/variables.md and the tables in the roles' READMEs.

A variable's meaning stands in its role's meta/argument_specs.yml and its default in defaults/main.yml, nowhere else.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "variables.md"
SHOWN_DEFAULT = 60
"""Characters of a default that fit into a table; a longer one is looked up in the role."""

MARKUP = re.compile(r"\b[COV]\(([^)]*)\)")
"""Ansible's semantic markup of code, options and values."""
TABLE = re.compile(r"^\| variable \|.*\n(?:\|.*\n)+", re.MULTILINE)


def render(roles: Path) -> str:
    """The page for a folder of roles.

    :raises KeyError: a role has no argument specification, or an option in it no description.
    """
    lines = [
        "# Variables",
        "",
        "Made from the roles' `meta/argument_specs.yml` and `defaults/main.yml` by `python3 docs/variables.py`; a test",
        "keeps it current. Set them in `inventories/<site>/group_vars/<group>/<role>.yml`. The README of each role",
        "says more, that of `workloads` the keys of `workloads_trainings`; `workloads/catalogue` has their defaults.",
        "",
        "An INI inventory and `-e name=value` give texts. A text is converted to the declared type: `true`, `yes`,",
        "`on` or `1`, and `false`, `no`, `off` or `0`, for a bool; digits for an int. Any other text is refused.",
    ]
    for path in sorted(roles.glob("*/meta/argument_specs.yml")):
        role = path.parents[1]
        title = str(_read(path)["argument_specs"]["main"]["short_description"]).rstrip(".")
        lines += ["", f"## {role.name}", "", f"{title}.", "", table(role) or "No variables of its own."]
    return "\n".join(lines) + "\n"


def table(role: Path) -> str:
    """The table of a role's own variables; empty when it has none."""
    defaults = _read(role / "defaults" / "main.yml") or {}
    document = _read(role / "meta" / "argument_specs.yml")["argument_specs"]
    options: dict[str, dict[str, Any]] = {}
    # The main entry point describes an option that several have.
    for entry in [*document.values(), document["main"]]:
        options.update(entry.get("options") or {})
    rows = [
        _row(name, option, defaults.get(name), role.name)
        for name, option in options.items()
        if name.startswith(f"{role.name}_")
    ]
    return "\n".join(["| variable | type | default | meaning |", "| --- | --- | --- | --- |", *rows]) if rows else ""


def readme(role: Path) -> str:
    """A role's README with its table as it should be."""
    text = (role / "README.md").read_text(encoding="utf-8")
    return TABLE.sub(lambda _: table(role) + "\n", text, count=1)


def _read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def _row(name: str, option: dict[str, Any], default: object, role: str) -> str:
    cells = [f"`{name}`", _type(option), _default(option, default, role), _meaning(option)]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _type(option: dict[str, Any]) -> str:
    return f"list of {option['elements']}" if "elements" in option else str(option["type"])


def _default(option: dict[str, Any], default: object, role: str) -> str:
    if option.get("required"):
        return "required"
    text = default if isinstance(default, str) and default else json.dumps(default)
    if len(text) > SHOWN_DEFAULT:
        return f"see `roles/{role}/defaults/main.yml`"
    return f"`{text}`"


def _meaning(option: dict[str, Any]) -> str:
    description = option["description"]
    sentences = [description] if isinstance(description, str) else list(description)
    if "choices" in option:
        sentences.append(f"One of {', '.join(f'`{choice}`' for choice in option['choices'])}.")
    if "options" in option:
        keys = (f"`{key}`{'' if inner.get('required') else ' (optional)'}" for key, inner in option["options"].items())
        sentences.append(f"Keys: {', '.join(keys)}.")
    text = " ".join(" ".join(str(sentence).split()) for sentence in sentences)
    return MARKUP.sub(r"`\1`", text)


if __name__ == "__main__":
    for folder in (ROOT / "roles").iterdir():
        (folder / "README.md").write_text(readme(folder), encoding="utf-8")
    TARGET.write_text(render(ROOT / "roles"), encoding="utf-8")
