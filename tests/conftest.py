"""Fixtures and order of all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import one_name

ROOT = Path(__file__).resolve().parent.parent

one_name.install()

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
