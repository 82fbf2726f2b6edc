"""Run the scenarios of `make test` in two parallel lanes, because much of each scenario is waiting."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tests.lab.suite import Scenario, remove_nodes, run_on_site, run_scenario

SITE = "cluster"
"""The scenario that creates a whole site, which others reuse."""

SITE_REMOVED = "cluster_removed"
"""The last step of that lane: the site is removed, and no remnant may be left."""

Lane = dict[str, Callable[[], list[str]]]
"""Consecutive work by name; each returns its times, see `suite.run`."""


def lanes(chosen: Iterable[Scenario], logs: Path) -> tuple[Lane, Lane]:
    """Return the scenarios on the site of `cluster`, and all others, with the chained ones last.

    If `cluster` is not chosen, scenarios with steps for its site run completely, with the others.
    """
    by_name = {scenario.name: scenario for scenario in chosen}
    on_site: Lane = {}
    if site := by_name.pop(SITE, None):
        on_site[SITE] = partial(run_scenario, site, logs, mirror_is_up=True, stays=True)
        for name in [name for name, scenario in by_name.items() if scenario.on_site]:
            on_site[name] = partial(run_on_site, by_name.pop(name), logs)
        on_site[SITE_REMOVED] = partial(remove_nodes, site, logs)
    others: Lane = {
        name: partial(run_scenario, scenario, logs, mirror_is_up=True, stays=scenario.chained)
        for name, scenario in by_name.items()
    }
    chained = [scenario for scenario in by_name.values() if scenario.chained]
    if chained:
        last = chained[-1]
        others[last.name] = partial(_then_remove, others[last.name], last, logs)
    return on_site, others


def _then_remove(run_last: Callable[[], list[str]], scenario: Scenario, logs: Path) -> list[str]:
    """Run the last of the chained scenarios, and remove their nodes, which would otherwise use CPU time."""
    try:
        return run_last()
    finally:
        remove_nodes(scenario, logs)


def start(chosen: Iterable[Scenario], logs: Path, pool: ThreadPoolExecutor) -> dict[str, Future[list[str]]]:
    """Start scenarios; the mirror that they share is running.

    :param pool: has two workers.
    :returns: the outcome of each scenario by its name, as it comes, and that of `SITE_REMOVED` if `SITE` is chosen.
    """
    both = lanes(chosen, logs)
    outcomes: dict[str, Future[list[str]]] = {name: Future() for lane in both for name in lane}

    def walk(lane: Lane) -> None:
        for name, work in lane.items():
            try:
                if name not in (SITE, SITE_REMOVED) and SITE in lane and outcomes[SITE].exception():
                    raise AssertionError(f"{SITE} has failed, and {name} runs on its site")
                outcomes[name].set_result(work())
            except BaseException as error:
                outcomes[name].set_exception(error)

    for lane in both:
        pool.submit(walk, lane)
    return outcomes
