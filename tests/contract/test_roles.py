"""Tests of every role: the same layout, and one place for each fact about a variable."""

from __future__ import annotations

import re

import pytest
from checkout import ROLES, Role, read_yaml, role_id

pytestmark = pytest.mark.parametrize("role", ROLES, ids=role_id)


def test_shape(role: Role) -> None:
    for path in ("README.md", "defaults/main.yml", "tasks/main.yml", "meta/main.yml", "meta/argument_specs.yml"):
        assert (role.path / path).is_file(), f"roles/{role.name}/{path} is missing"


def test_meta(role: Role) -> None:
    info = read_yaml(role.path / "meta" / "main.yml")["galaxy_info"]
    assert info["author"] == "trainyard"
    assert info["license"] == "Apache-2.0"
    assert info["min_ansible_version"] == "2.19", "host_files templates its entries as 2.19 does"
    assert info["description"]
    assert {platform["name"] for platform in info["platforms"]} <= {"Debian", "Ubuntu"}


def test_defaults_and_specification_have_the_same_keys(role: Role) -> None:
    assert role.defaults.keys() <= role.options.keys(), "in defaults/main.yml and not in meta/argument_specs.yml"
    for name in role.own_options - role.defaults.keys():
        assert role.options[name].get("required"), f"{name} has no default and is not required"


def test_a_default_stands_in_one_place(role: Role) -> None:
    for name, option in role.options.items():
        assert "default" not in option, f"move the default of {name} to defaults/main.yml"
    for name, value in role.defaults.items():
        if "undef(" in str(value):
            assert role.options[name].get("required"), f"{name} must be given, so it is required"


def test_every_option_is_described_and_typed(role: Role) -> None:
    for name, option in role.options.items():
        assert option.get("description"), f"{name} has no description"
        assert option.get("type"), f"{name} has no type"


def test_names(role: Role) -> None:
    """Public names begin with the role's name; names of another role are declared there."""
    for name in role.defaults:
        assert name.startswith(f"{role.name}_"), f"{name} in the defaults of {role.name}"
    for name in role.options.keys() - role.own_options:
        assert any(name in other.own_options for other in ROLES), f"{name} belongs to no role"
    for name in role.variables:
        assert name.startswith(f"__{role.name}_"), f"{name} in vars/ is internal"


def test_readme_says_what_a_user_needs(role: Role) -> None:
    headings = " ".join(re.findall(r"^#+ (.*)$", role.readme, re.MULTILINE)).lower()
    for word in ("variables", "example", "undo"):
        assert word in headings, f"no heading about {word}"


def test_a_role_names_no_internal_of_another(role: Role) -> None:
    """Names with two underscores may change with their role at any time."""
    others = "|".join(other.name for other in ROLES if other.name != role.name)
    internal = re.compile(rf"\b__({others})_[a-z]\w*")
    # If the names of two roles begin alike, the longer one owns the name.
    own = f"__{role.name}_"
    found = {
        f"{path.relative_to(role.path)}: {match[0]}"
        for path in role.path.rglob("*")
        if path.is_file() and path.suffix in {".yml", ".j2"}
        for match in internal.finditer(path.read_text(encoding="utf-8"))
        if not match[0].startswith(own)
    }
    assert not found, sorted(found)


def test_imports_below_main_name_the_role(role: Role) -> None:
    """Ansible looks for an import inside an import in `tasks/` of the working directory first."""
    for path in sorted((role.path / "tasks").glob("*.yml")):
        if path.name == "main.yml":
            continue
        for found in re.findall(r"import_tasks:\s+(?:file:\s+)?(\S.*)", path.read_text(encoding="utf-8")):
            assert found.startswith('"{{ role_path }}/tasks/'), f"{path.name} imports {found}"


def test_no_task_is_asynchronous(role: Role) -> None:
    """A task with become and async fails on hosts whose sudo keeps its children."""
    for path in role.path.rglob("tasks/*.yml"):
        assert not re.search(r"^\s+(async|poll):", path.read_text(encoding="utf-8"), re.MULTILINE), path
