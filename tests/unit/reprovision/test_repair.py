"""A converge from its look to its report, with a site in memory."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.unit.reprovision.sites import NOW, Stopped, site
from tests.unit.reprovision.worlds import HOSTS, World, cluster, leased
from trainyard.drift import node_state, repair_plan
from trainyard.drift.converge import converge
from trainyard.drift.report import Revision, begun
from trainyard.drift.report_run import Session, report
from trainyard.drift.report_store import Store

GOOD = Revision("3f2a91c" + "0" * 33, "main", True)
WIDE = {"max_hosts": "100%", "max_unreachable": "40%"}
LOOK, ALL = "check all", "run localhost"


def one(host: str) -> list[str]:
    """A host's repair, and the look at it as the canary."""
    return [f"run {host} hosts alone", f"check {host} hosts alone"]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "state")


def run(store: Store, world: World, *, clock: Stopped | None = None, **named: Any) -> dict[str, Any]:
    settings, seen = {**WIDE, **named.pop("settings", {})}, named.pop("cluster", {})
    with leased(named.pop("lost", ""), named.pop("leased", True)) as locks:
        session = Session(
            site(store.folder, **settings), store, mode="converge", asked="converge", revision=GOOD, locks=locks,
            clock=clock or Stopped(), play=world, **named,
        )  # fmt: skip
        status = converge(session, connect=lambda _: cluster(**seen))
    found = store.report(session.name)
    assert found is not None and found["exit_status"] == status and found == session.report
    return found


DRIFT = {"worker1": ["a"], "worker3": ["b"], "localhost": ["NetworkPolicy trainings/deny-all"]}
REPAIR = [LOOK, *one("worker1"), "run worker3 hosts alone", ALL, LOOK]


@pytest.mark.parametrize(
    ("drift", "named", "calls", "status", "headline"),
    [
        pytest.param({}, {}, [LOOK], 0, "clean", id="nothing, so no second run"),
        pytest.param(DRIFT, {}, REPAIR, 0, "all drift repaired", id="a canary, the others, the cluster, a second look"),
        pytest.param(DRIFT, {"verdict": "fail"}, REPAIR, 5, "the verdict after the repair is fail; 3",
                     id="the verdict is fail"),
        pytest.param(DRIFT, {"fails": ["worker1"]}, [LOOK, "run worker1 hosts alone", LOOK], 5,
                     "a repair failed: worker1: worker1: the disk is full", id="the canary fails"),
        pytest.param(DRIFT, {"stays": ["worker3"]}, REPAIR, 5, "a repair failed: 1 items still differ",
                     id="a repair that does not last"),
        pytest.param(DRIFT, {"away": ["worker2"]}, [*REPAIR[:-2], f"{ALL}, worker2 left as it is", LOOK], 2,
                     "unknown: not reached: worker2; 3 of 4 items",
                     id="one host does not answer"),
        pytest.param({"worker1": ["x"]}, {"kinds": {"x": "else"}}, [LOOK], 1, "1 item of drift, 1 for an operator",
                     id="only for an operator"),
        pytest.param({"worker1": ["x"], "localhost": ["c"]}, {"kinds": {"x": "else"}},
                     [LOOK, f"{ALL}, worker1 left as it is", LOOK], 1, "1 of 2 items repaired",
                     id="a host held back, and the cluster"),
        pytest.param({"worker1": ["a", "x"], "worker2": ["b"]}, {"kinds": {"x": "else"}},
                     [LOOK, "run worker2 hosts alone", LOOK], 1, "1 of 3 items repaired; 2 left for an operator",
                     id="a host as a whole or not at all"),
    ],
)  # fmt: skip
def test_a_converge(store: Store, drift: Any, named: Any, calls: list[str], status: int, headline: str) -> None:
    world = World(drift, **named)
    found = run(store, world)
    assert world.calls == calls
    assert found["exit_status"] == status and found["headline"].startswith(headline), found["headline"]


def test_what_a_report_of_a_converge_says(store: Store) -> None:
    found = run(store, World(DRIFT))
    assert [(each["host"], each["done"]) for each in found["items"]] == [
        (host, "repaired, proven") for host in ("cluster", "worker1", "worker3")
    ]
    assert found["hosts"] == {host: {"state": "clean", "items": 0} for host in HOSTS}
    assert (found["verdict"], found["lock"]["leased"], len(found["repaired"])) == ("pass", True, 3)
    assert store.history() == {}, "what was repaired begins anew when it comes back"
    assert (store.runs / found["id"] / "output.txt.gz").read_bytes() == b"x" * len(REPAIR)


def test_what_the_verdict_missed_before_a_repair_is_not_said_after_it(store: Store) -> None:
    assert run(store, World(DRIFT, breaks=["worker1"], stays=["worker1"]))["notes"][0] == "verdict: worker1 is broken"
    assert run(store, World(DRIFT, breaks=["worker1"]))["notes"] == []


@pytest.mark.parametrize(
    ("named", "why"),
    [
        ({"leased": False}, "the cluster's lease is not held. There is no lease: no answer"),
        ({"cluster": {"answers": False}}, "the hosts of the running trainings are unknown"),
    ],
)
def test_without_the_cluster_nothing_is_changed(store: Store, named: Any, why: str) -> None:
    world = World(DRIFT)
    found = run(store, world, **named)
    assert (world.calls, found["exit_status"], found["repaired"]) == ([LOOK], 2, None)
    assert f"nothing was changed: {why}" in found["headline"]


def test_a_lost_lease_and_a_window_that_ends(store: Store) -> None:
    world = World(DRIFT)
    found = run(store, world, lost="The lease was deleted.")
    assert (world.calls, found["exit_status"]) == ([LOOK], 2)
    assert found["headline"] == "unknown: The lease was deleted"
    ended = datetime.fromtimestamp(NOW, UTC)
    night = {"from": f"{ended.hour - 1:02}:00", "to": f"{ended.hour:02}:00"}
    assert run(store, world, settings={"windows": [night]})["headline"] == "held back: the window has ended"


def test_a_node_that_does_not_come_back_ends_it(store: Store) -> None:
    world, clock = World(DRIFT), Stopped()
    found = run(store, world, cluster={"unready": ("worker1",)}, clock=clock)
    assert found["exit_status"] == 5 and "the node worker1 is not Ready 360 s after its repair" in found["headline"]
    assert "run worker3 hosts alone" not in world.calls
    assert clock.now - NOW <= node_state.READY_SECONDS


def test_a_node_that_starts_no_pod_ends_it(store: Store) -> None:
    """What runs there goes on, so that it looks as it should."""
    left = node_state.pod("worker2", "pause")
    made: dict[str, Any] = {left["metadata"]["name"]: left}
    world, clock = World(DRIFT), Stopped()
    found = run(store, world, cluster={"starts": False, "made": made}, clock=clock)
    assert found["exit_status"] == 5
    assert 'worker1: no new pod starts on worker1: it is Pending (no runtime for "rnuc")' in found["headline"]
    assert "run worker3 hosts alone" not in world.calls
    assert made == {}, "neither its own is left, nor that of a run before"
    assert clock.now - NOW <= node_state.SECONDS


@pytest.mark.parametrize(
    ("repaired", "back", "waited"),
    [
        pytest.param(["base:sysctl"], 60.0, 60.0, id="until the pods stand"),
        pytest.param(["base:sysctl"], 9999.0, node_state.READY_SECONDS, id="no longer than after a repair"),
        pytest.param(None, 60.0, 0.0, id="not where nothing was changed"),
    ],
)
def test_an_interrupted_repair_gets_time(store: Store, repaired: Any, back: float, waited: float) -> None:
    store.begin(NOW - 9, {**begun("converge", "converge", NOW - 9), "repaired": repaired})
    clock = Stopped()
    found = run(store, World({}), clock=clock, cluster={"waits": lambda: clock.now < NOW + back})
    assert (found["exit_status"], clock.now - NOW) == (0, waited)


def test_a_training_keeps_its_node_from_being_the_canary(store: Store) -> None:
    world = World({"worker1": ["a"], "worker2": ["b"]})
    run(store, world, cluster={"training": ("worker1",)})
    assert world.calls[1:3] == one("worker2")


def test_the_limits_and_their_approval(store: Store) -> None:
    world, clock, narrow = World(DRIFT), Stopped(), {"settings": {"max_hosts": "20%"}}
    first = run(store, world, clock=clock, **narrow)
    assert (first["exit_status"], world.calls, first["repaired"]) == (3, [LOOK], None)
    assert first["limits"] == ["2 of 3 hosts have drifted, and reprovision_max_hosts (20%) allows 1"]
    assert "no report is approved" in first["notes"]
    repair_plan.save(store.folder, repair_plan.approve(first, clock.now, "alice"))
    clock.now += 3600
    second = run(store, world, clock=clock, **narrow)
    assert (second["exit_status"], world.calls[1:]) == (0, REPAIR)
    assert f"alice has approved {first['id']}" in second["notes"][-1]
    third = run(store, World(DRIFT), clock=clock, **narrow)
    assert third["exit_status"] == 3 and f"the approval of {first['id']} has been used" in third["notes"]


def test_a_run_whose_time_is_up_begins_nothing_more(store: Store) -> None:
    class Slow(World):
        def __call__(self, playbook: str, **options: Any) -> Any:
            assert options["timeout"] >= 900
            clock.now += 900
            return super().__call__(playbook, **options)

    clock = Stopped()
    found = run(store, Slow(DRIFT), clock=clock)
    assert found["exit_status"] == 3 and "the time of this run is up" in found["headline"]
    assert [each["done"] for each in found["items"]] == ["", "repaired, proven", ""]


def test_a_revision_that_needs_a_person_is_an_item(store: Store) -> None:
    late = replace(GOOD, may_converge=False, refused="It requires another patch version of Kubernetes.")
    for revision, status in ((late, 1), (replace(late, refused="", note="No answer."), 2)):
        session = Session(site(store.folder), store, revision=revision, clock=Stopped(), play=World({}))
        assert report(session) == status
        told = [(each["host"], each["class"], each["reason"]) for each in session.report["items"]]
        assert told == ([("controller", "person", late.refused)] if revision is late else [])
