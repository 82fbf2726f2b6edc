"""The order of the tests when scenarios are among them."""

from __future__ import annotations

import pytest

NAMES = ("test_scenario[", "test_scenario_alone[")


@pytest.hookimpl(trylast=True)  # after those that leave tests out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run what needs no lab while the scenarios run, because most of a scenario is waiting.

    The first scenario's test starts them all (see `outcomes` in test_scenarios.py), so it goes first; the others only
    collect what came of them, so they go last.
    """
    scenarios = [item for item in items if item.name.startswith(NAMES)]
    others = [item for item in items if not item.name.startswith(NAMES)]
    items[:] = scenarios[:1] + others + scenarios[1:]
