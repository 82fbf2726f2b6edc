"""Tests that the page of variables and the roles' READMEs match the roles' specifications and defaults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from checkout import ROLES, ROOT, Role, load, role_id


def _program() -> Any:
    return load(ROOT / "tools" / "variables.py")


def test_the_page_of_variables_is_current() -> None:
    program = _program()
    page = program.render(ROOT / "roles")
    assert program.TARGET.read_text(encoding="utf-8") == page, "run `python3 tools/variables.py`"


@pytest.mark.parametrize("role", ROLES, ids=role_id)
def test_the_table_in_a_readme_is_current(role: Role) -> None:
    assert role.readme == _program().readme(role.path), "run `python3 tools/variables.py`"
    assert _program().table(role.path) in role.readme


def test_the_page_names_every_variable_of_every_role() -> None:
    page = (ROOT / "docs" / "reference" / "variables.md").read_text(encoding="utf-8")
    missing = {name for role in ROLES for name in role.own_options if f"| `{name}` |" not in page}
    assert not missing


def test_a_row_shows_what_the_specification_says(tmp_path: Path) -> None:
    folder = tmp_path / "toy" / "meta"
    folder.mkdir(parents=True)
    (folder / "argument_specs.yml").write_text(
        """
argument_specs:
  main:
    short_description: Play with toys
    options:
      toy_names:
        description: Names, a|b.
        type: list
        elements: dict
        required: true
        options:
          name: {type: str, required: true}
          colour: {type: str}
      toy_mode:
        description: [Way of, playing.]
        type: str
        choices: [alone, together]
      toy_on: {description: On or off., type: bool}
      toy_long: {description: Long., type: str}
      other_thing: {description: Belongs to another role., type: str}
""",
        encoding="utf-8",
    )
    (tmp_path / "toy" / "defaults").mkdir()
    defaults = {"toy_mode": "alone", "toy_on": False, "toy_long": "x" * 80}
    (tmp_path / "toy" / "defaults" / "main.yml").write_text(json.dumps(defaults), encoding="utf-8")
    page = _program().render(tmp_path)
    assert "| `toy_names` | list of dict | required | Names, a\\|b. Keys: `name`, `colour` (optional). |" in page
    assert "| `toy_mode` | str | `alone` | Way of playing. One of `alone`, `together`. |" in page
    assert "| `toy_on` | bool | `false` | On or off. |" in page
    assert "| `toy_long` | str | see `roles/toy/defaults/main.yml` | Long. |" in page
    assert "other_thing" not in page
