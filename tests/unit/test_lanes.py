"""Which scenario of `make test` runs where, and what becomes of the others when the site fails."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.lab import lanes
from tests.lab.suite import Scenario, environment, scenarios

CHOSEN = [
    Scenario("base", "test", False, (), ()),
    Scenario("cluster", "test", False, (), ()),
    Scenario("worker", "test", True, (), ("base",)),
    Scenario("metrics", "test", True, ("verify",), ("base", "worker")),
    Scenario("gpus", "test", True, (), ("base", "worker")),
]


@pytest.fixture()
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was run, as it comes; the scenario whose name the folder of logs has fails."""
    seen: list[str] = []

    def scenario(scenario: Scenario, logs: Path, **more: bool) -> list[str]:
        seen.append(f"{scenario.name}{' stays' if more['stays'] else ''}")
        if logs.name == scenario.name:
            raise AssertionError("broken")
        return ["1 s"]

    def on_site(scenario: Scenario, logs: Path) -> list[str]:
        seen.append(f"{scenario.name} on the site")
        return ["1 s"]

    def remove(scenario: Scenario, logs: Path) -> list[str]:
        seen.append(f"{scenario.name} removed")
        return ["1 s"]

    monkeypatch.setattr(lanes, "run_scenario", scenario)
    monkeypatch.setattr(lanes, "run_on_site", on_site)
    monkeypatch.setattr(lanes, "remove_nodes", remove)
    return seen


def _run(chosen: list[Scenario], failing: str = "") -> dict[str, str]:
    """The outcomes in words; the scenario `failing` fails."""
    with ThreadPoolExecutor(2) as pool:
        outcomes = lanes.start(chosen, Path("/logs") / failing, pool)
    return {name: str(outcome.exception() or "passed") for name, outcome in outcomes.items()}


def test_scenarios_go_on_with_the_site_beside_the_others(calls: list[str]) -> None:
    assert set(_run(CHOSEN).values()) == {"passed"}
    site = [call for call in calls if call.startswith(("cluster", "metrics"))]
    assert site == ["cluster stays", "metrics on the site", "cluster removed"]
    assert [call for call in calls if call not in site] == ["base", "worker stays", "gpus stays", "gpus removed"]


def test_without_the_site_they_run_as_a_whole(calls: list[str]) -> None:
    outcomes = _run([scenario for scenario in CHOSEN if scenario.name != "cluster"])
    assert list(outcomes) == ["base", "worker", "metrics", "gpus"]
    assert calls == ["base", "worker stays", "metrics stays", "gpus stays", "gpus removed"]


def test_a_failed_site_fails_what_would_go_on_with_it(calls: list[str]) -> None:
    outcomes = _run(CHOSEN, failing="cluster")
    assert outcomes["cluster"] == "broken"
    assert outcomes["metrics"] == "cluster has failed, and metrics runs on its site"
    assert outcomes["cluster_removed"] == outcomes["gpus"] == "passed"
    assert "metrics on the site" not in calls


def test_the_nodes_of_the_chained_are_removed_after_a_failure(calls: list[str]) -> None:
    assert _run(CHOSEN, failing="gpus")["gpus"] == "broken"
    assert "gpus removed" in calls


def test_every_scenario_for_the_site_is_one_of_the_chain() -> None:
    found = [scenario for scenario in scenarios() if scenario.on_site]
    assert found
    assert all(scenario.chained and "network" in scenario.prepared for scenario in found)
    assert all(set(scenario.on_site) <= {"converge", "side_effect", "verify"} for scenario in found)


def test_a_scenario_has_the_programs_of_the_suite_while_another_test_replaces_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once a scenario started while a test had replaced PATH, found no nft, and left its nodes."""
    before = environment()
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    assert environment() == before
