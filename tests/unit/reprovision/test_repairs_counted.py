"""Which repairs of earlier converges count, and what is said of one that nobody had planned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.reprovision.sites import Stopped
from tests.unit.reprovision.test_repair import run
from tests.unit.reprovision.worlds import World, change
from trainyard.drift.converge import converges
from trainyard.drift.report_store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "state")


def test_what_comes_back_three_times_is_for_a_person_and_stays_so(store: Store) -> None:
    clock, statuses = Stopped(), []
    for _ in range(6):
        world = World({"worker1": ["a"]})
        statuses.append((run(store, world, clock=clock)["exit_status"], len(world.calls)))
        clock.now += 86400
    assert statuses == [(0, 3)] * 3 + [(1, 1)] * 3
    run(store, World({}), clock=clock)
    clock.now += 86400
    assert run(store, World({"worker1": ["a"]}), clock=clock)["exit_status"] == 0


def test_converges_of_some_hosts_do_not_count_for_the_site(store: Store) -> None:
    clock = Stopped()
    for hosts in ((), ("worker1",), (), ("worker2",), ()):
        run(store, World({"worker1": ["a"], "worker2": ["b"]}), clock=clock, hosts=hosts)
        clock.now += 86400
    assert [len(each) for each in converges(store)] == [2, 2, 2]
    # With their repairs it would not be three in a row.
    assert run(store, World({"worker1": ["a"]}), clock=clock)["exit_status"] == 1


def test_what_a_repair_changes_besides_is_said(store: Store) -> None:
    class Later(World):
        def __call__(self, playbook: str, **options: Any) -> Any:
            played = super().__call__(playbook, **options)
            if options["mode"] == "run" and options["site_hosts"] == ("worker1",):
                played.events.insert(0, change("worker1", "came later"))
                played.events.insert(0, change("worker1", "a"))
            return played

    found = run(store, Later({"worker1": ["a"]}))
    told = "changed by the repair, but not found by the check before it: worker1: came later"
    assert (found["exit_status"], found["notes"]) == (0, [told])


def test_a_killed_converge_has_repaired_what_it_began(store: Store) -> None:
    class Killed(World):
        def __call__(self, playbook: str, **options: Any) -> Any:
            if options["mode"] == "run":
                raise KeyboardInterrupt
            return super().__call__(playbook, **options)

    with pytest.raises(KeyboardInterrupt):
        run(store, Killed({"worker1": ["a"]}))
    assert [len(each) for each in converges(store)] == [1]
    later = Stopped()
    later.now += 60
    run(store, World({}), clock=later)
    assert [len(each) for each in converges(store)] == [1, 0]
    assert sorted(each["state"] for each in store.reports()) == ["complete", "interrupted"]
