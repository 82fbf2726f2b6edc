"""Run every molecule scenario of `make test` on system containers of this machine.

The scenarios share one lab and its mirror, which are created before the first and removed after the last. Only
`cluster` has its own lab, and others reuse the site in it. Two run at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lab.lanes import SITE_REMOVED, start
from tests.lab.suite import ROOT, SCENARIO_LIMIT, environment, playbook, run, scenarios

BUNDLE_LIMIT = 3000
"""Seconds to build the bundle from scratch, and the mirror."""

SCENARIOS = {scenario.name: scenario for scenario in scenarios() if scenario.suite == "test"}

LABS = ["-e", "lab_name=trainyard-test"], ["-e", "lab_name=trainyard-test2", "-e", "lab_subnet=10.86.0.0/24"]

pytestmark = [
    pytest.mark.lab,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="a lab needs root"),
]


@contextmanager
def _terminal(request: pytest.FixtureRequest) -> Iterator[None]:
    """Show output printed inside on the terminal immediately."""
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        yield


def _show(request: pytest.FixtureRequest, name: str, steps: list[str]) -> None:
    with _terminal(request):
        print(f"\n{name}: {', '.join(steps)}", flush=True)


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("molecule")


@pytest.fixture(scope="session")
def mirror(request: pytest.FixtureRequest, logs: Path) -> Iterator[None]:
    """Build the whole bundle, and fill the test lab's mirror from it; remove every test lab afterwards."""
    with _terminal(request):
        print(f"\nBundle and mirror for the scenarios; logs in {logs}")
        for index, arguments in enumerate(LABS):
            run(playbook("lab_down.yml", *arguments), logs / f"down_{index}.log", 120, environment())
        everything = ["-e", "test_lab_training=true", "-e", "test_lab_gpus=true"]
        run(playbook("mirror.yml", *everything), logs / "mirror.log", BUNDLE_LIMIT, environment(), show=True)
    yield
    for index, arguments in enumerate(LABS):
        run(playbook("lab_down.yml", *arguments), logs / f"down_{index}.log", 120, environment())


@pytest.fixture(scope="session")
def outcomes(request: pytest.FixtureRequest, mirror: None, logs: Path) -> Iterator[dict[str, Future[list[str]]]]:
    """Start the requested scenarios, and return their outcomes."""
    asked = [item.callspec.params["name"] for item in request.session.items if item.name.startswith("test_scenario[")]
    with ThreadPoolExecutor(2) as pool:
        yield start([SCENARIOS[name] for name in SCENARIOS if name in asked], logs, pool)


def test_every_role_has_a_scenario() -> None:
    roles = {path.name for path in (ROOT / "roles").iterdir() if path.is_dir()}
    assert roles <= {scenario.name for scenario in scenarios()}


@pytest.mark.parametrize("name", [*SCENARIOS, SITE_REMOVED])
def test_scenario(name: str, outcomes: dict[str, Future[list[str]]], request: pytest.FixtureRequest) -> None:
    _show(request, name, outcomes[name].result(SCENARIO_LIMIT * len(SCENARIOS)))
