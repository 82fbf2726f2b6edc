"""Fixtures and order of all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import one_name
from tests.cpu_seconds import CpuSeconds

ROOT = Path(__file__).resolve().parent.parent

one_name.install()

BESIDE = ("test_linter_finds_nothing[", "test_scenario[")
"""Name prefixes of tests whose first one starts background work, which continues while other tests run."""


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(CpuSeconds())


@pytest.hookimpl(trylast=True)  # after the hooks that deselect tests
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the first test of each of `BESIDE`, then all other tests, and at the end those that collect the results."""
    kinds = [[item for item in items if item.name.startswith(name)] for name in BESIDE]
    others = [item for item in items if not item.name.startswith(BESIDE)]
    # Trainings have time limits. Run them while the scenarios create hosts, not beside the scenario that trains.
    others.sort(key=lambda item: not item.path.is_relative_to(ROOT / "workloads"))
    items[:] = [kind[0] for kind in kinds if kind] + others + [item for kind in kinds for item in kind[1:]]


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the checkout."""
    return ROOT
