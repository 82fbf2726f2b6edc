#!/usr/bin/env python3
"""Writes docs/variables.md from the roles' argument specifications, the one description of their variables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "variables.md"
SHOWN_DEFAULT = 60
"""Characters of a default that fit into a table; a longer one is looked up in the role."""


def render(roles: Path) -> str:
    """The page for a folder of roles.

    :raises KeyError: a role has no argument specification, or an option in it no description.
    """
    lines = [
        "# Variables",
        "",
        "Made from `roles/*/meta/argument_specs.yml` by `python3 docs/variables.py`; a test keeps it current.",
        "",
        "Set them in `inventories/<site>/group_vars/<group>/<role>.yml`. The README of each role says more, and",
        "`workloads/catalogue.yml` has the keys of `workloads_training` with their defaults.",
    ]
    for path in sorted(roles.glob("*/meta/argument_specs.yml")):
        role = path.parts[-3]
        document = yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"]
        options: dict[str, dict[str, Any]] = {}
        # The main entry point describes an option that several have.
        for entry in [*document.values(), document["main"]]:
            options.update(entry.get("options") or {})
        own = {name: option for name, option in options.items() if name.startswith(f"{role}_")}
        lines += ["", f"## {role}", "", f"{str(document['main']['short_description']).rstrip('.')}.", ""]
        if not own:
            lines.append("No variables of its own.")
            continue
        lines += ["| variable | type | default | meaning |", "| --- | --- | --- | --- |"]
        lines += [_row(name, option, role) for name, option in own.items()]
    return "\n".join(lines) + "\n"


def _row(name: str, option: dict[str, Any], role: str) -> str:
    cells = [f"`{name}`", _type(option), _default(option, role), _meaning(option)]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _type(option: dict[str, Any]) -> str:
    return f"list of {option['elements']}" if "elements" in option else str(option["type"])


def _default(option: dict[str, Any], role: str) -> str:
    if option.get("required"):
        return "required"
    value = option.get("default")
    text = value if isinstance(value, str) and value else json.dumps(value)
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
    return " ".join(" ".join(str(sentence).split()) for sentence in sentences)


if __name__ == "__main__":
    TARGET.write_text(render(ROOT / "roles"), encoding="utf-8")
