"""What every test gets: the project's module_utils under the import path that Ansible gives them at run time."""

from __future__ import annotations

from pathlib import Path

import ansible.module_utils
import pytest

ROOT = Path(__file__).resolve().parent.parent

ansible.module_utils.__path__.append(str(ROOT / "module_utils"))

BESIDE = ("test_linter_finds_nothing[", "test_scenario[")
"""Tests, by their names' beginnings, of which the first starts what they are about; it goes on while others run."""


@pytest.hookimpl(trylast=True)  # after those that leave tests out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the other tests meanwhile: the first of each of `BESIDE` goes first, the others only collect its results."""
    kinds = [[item for item in items if item.name.startswith(name)] for name in BESIDE]
    others = [item for item in items if not item.name.startswith(BESIDE)]
    # They train, with time limits: while the scenarios make hosts, and not beside the scenario that trains.
    others.sort(key=lambda item: not item.path.is_relative_to(ROOT / "workloads"))
    items[:] = [kind[0] for kind in kinds if kind] + others + [item for kind in kinds for item in kind[1:]]


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT
