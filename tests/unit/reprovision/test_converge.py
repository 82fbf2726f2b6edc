"""What a converge repairs, in which order, what stops it, and with which exit status it ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.reprovision.plans import HOSTS, World, drifted, item, made
from trainyard.drift.items import Item
from trainyard.drift.repair_plan import WAITS
from trainyard.drift.repairs import carry_out

NODE_PORT = replace(item("cluster", "foreign", "Service web/shop"), module="cluster_findings")


@pytest.mark.parametrize(
    ("items", "named", "canary", "batches", "own"),
    [
        ([], {}, "", (), False),
        (drifted("cp1", "w2"), {}, "w2", (("cp1",),), False),
        (drifted("w1", "w2"), {"training": ["w1"]}, "w2", (("w1",),), False),
        (drifted("cp1"), {}, "cp1", (), False),
        (drifted("w1", "w2"), {"settings": {"canary": "w2"}}, "w2", (("w1",),), False),
        # The one that was named has not drifted.
        (drifted("w1", "w2"), {"settings": {"canary": "w9"}}, "w1", (("w2",),), False),
        (drifted(*HOSTS), {}, "w1", (("cp1", "w2"), ("w3", "w4"), ("w5", "w6"), ("w7", "w8"), ("w9",)), False),
        (drifted("w1", "w2", "w3", kind="restart"), {"settings": {"batch": "100%"}}, "w1", (("w2",), ("w3",)), False),
        (drifted("cluster"), {}, "", (), True),
        ([*drifted("controller", "w1"), item("cluster", "person")], {}, "w1", (), False),
        ([*drifted("controller", "w1"), item("cluster")], {"some": True}, "w1", (), False),
        # What a host's play changes through the API is repaired with the host.
        ([replace(item("cluster"), via="cp1")], {}, "cp1", (), False),
        # What is only looked for in the cluster is changed by nobody.
        ([item("cluster"), NODE_PORT], {}, "", (), True),
        ([item("cp1"), NODE_PORT], {}, "cp1", (), False),
    ],
)
def test_the_order(items: list[Item], named: dict[str, Any], canary: str, batches: Any, own: bool) -> None:
    found = made(*items, **named)
    assert (found.canary, found.batches, found.own, found.refused) == (canary, batches, own, "")


@pytest.mark.parametrize(
    ("items", "named", "held"),
    [
        ([item("w1"), item("w1", "person", "unit")], {}, {"w1": "held back: unit needs an operator"}),
        ([item("w1", "foreign")], {}, {"w1": "held back: sysctl needs an operator"}),
        ([item("w1", "restart")], {"training": ["w1"]}, {"w1": "waits: a training runs on the host"}),
        ([item("w1")], {"training": ["w1"]}, {}),
        ([item("w1")], {"converges": [[item("w1").key]] * 3}, {"w1": "held back: sysctl needs an operator, because"}),
        ([item("w1")], {"converges": [[item("w1").key]] * 2}, {}),
        ([item("cluster")], {"some": True}, {"cluster": "left: the run is limited to some hosts"}),
        ([replace(item("cluster", "person"), via="w1")], {}, {"w1": "held back: sysctl needs an operator"}),
        # Every run of site.yml goes through the roles of the artefacts, and would change that as well.
        (
            [item("w1"), replace(item("controller", "person", "image"), role="bundle")],
            {},
            dict.fromkeys(["w1", "controller"], "held back: every run begins with image, which needs an operator"),
        ),
    ],
)
def test_a_host_is_repaired_as_a_whole_or_not_at_all(items: Any, named: dict[str, Any], held: dict[str, str]) -> None:
    found = made(*items, **named)
    assert found.held.keys() == held.keys()
    assert all(found.held[host].startswith(why) for host, why in held.items())
    assert found.empty is bool(held)


@pytest.mark.parametrize(
    ("hosts", "named", "refused"),
    [
        (HOSTS[:2], {}, ""),
        (HOSTS[:3], {}, "3 of 10 hosts have drifted"),
        (HOSTS[:6], {}, "6 of 10 hosts have drifted"),
        (HOSTS[:6], {"approved": True}, ""),
        (HOSTS[:1], {"unreachable": ["w8"]}, ""),
        (HOSTS[:1], {"unreachable": ["w8", "w9"]}, "2 of 10 hosts do not answer"),
        ([], {"unreachable": ["w8", "w9"]}, ""),
    ],
)
def test_the_limits_of_harm(hosts: list[str], named: dict[str, Any], refused: str) -> None:
    found = made(*drifted(*hosts), settings={"max_hosts": "20%"}, **named)
    assert found.refused.startswith(refused) if refused else found.refused == ""
    assert found.empty is bool(refused or not hosts)


THREE = [*drifted("w1", "w2", "w3"), item("cluster", subject="policy")]
ALL = ["w1", "look w1", "w2", "w3", "own", "look all"]


@pytest.mark.parametrize(
    ("items", "world", "calls", "status", "done"),
    [
        pytest.param([], {}, [], 0, [], id="nothing, so no second run"),
        pytest.param(THREE, {"verdict": "pass"}, ALL, 0, ["repaired, proven"] * 4, id="all is well"),
        pytest.param(THREE, {"verdict": "fail"}, ALL, 5, ["repaired, proven"] * 4, id="the verdict is fail"),
        pytest.param(THREE, {"verdict": "unknown"}, ALL, 2, ["repaired, proven"] * 4, id="no verdict"),
        pytest.param(THREE, {"doubts": ["w9 not reached"]}, ALL, 2, ["repaired"] * 4, id="not all was checked"),
        pytest.param(THREE, {"fails": {"repair": "w1"}}, ["w1", "look all"], 5, ["failed: the role failed", "", "", ""],
                     id="the canary fails"),
        pytest.param(THREE, {"fails": {"ready": "w1"}}, ["w1", "look all"], 5, ["failed: it is not Ready", "", "", ""],
                     id="the canary does not come back"),
        pytest.param(THREE, {"fails": {"drift": "w1"}}, ["w1", "look w1", "look all"], 5,
                     ["failed: another still differs", "", "", ""], id="the canary has drifted otherwise"),
        pytest.param(THREE, {"fails": {"repair": "w2"}}, ["w1", "look w1", "w2", "look all"], 5,
                     ["repaired, proven", "failed: the role failed", "", ""], id="the first failing host ends it"),
        pytest.param(THREE, {"fails": {"repair": "cluster"}, "verdict": "pass"}, ALL, 5,
                     [*["repaired, proven"] * 3, "failed: the role failed"], id="the cluster's own objects fail"),
        pytest.param(THREE, {"fails": {"stays": "w3"}, "verdict": "pass"}, ALL, 5,
                     ["repaired, proven", "repaired, proven", "failed: it still differs", "repaired, proven"],
                     id="the second report shows it again"),
        pytest.param(THREE, {"stop_after": 2}, ["w1", "look w1", "w2", "look all"], 3,
                     ["repaired, proven", "repaired, proven", "", ""], id="the window ends between batches"),
        pytest.param(THREE, {"stop_after": 0}, [], 3, ["", "", "", ""], id="the window has ended before"),
        pytest.param(THREE, {"lost_after": 2, "verdict": "pass"}, ["w1", "look w1", "w2", "look all"], 2,
                     ["repaired, proven", "repaired, proven", "", ""], id="the lease is lost between batches"),
        pytest.param(THREE, {"lost_after": 0}, [], 2, ["", "", "", ""], id="the lease was lost before"),
        pytest.param(THREE, {"refused": ["w3"], "verdict": "pass"}, ALL, 5,
                     ["repaired, proven", "repaired, proven", "repaired", "repaired, proven"],
                     id="a role refuses a host after its repair"),
        pytest.param(drifted("w1", "w2", kind="restart"), {"begins": "w2", "verdict": "pass"},
                     ["w1", "look w1", "look all"], 1, ["repaired, proven", WAITS], id="a training has begun"),
        pytest.param(drifted("w1", "w2", kind="restart"), {"begins": "w1"}, [], 3, [WAITS, ""],
                     id="on the canary, which the others need"),
        pytest.param(drifted("w1", "w2"), {"begins": "w1", "verdict": "pass"}, ["w1", "look w1", "w2", "look all"], 0,
                     ["repaired, proven"] * 2, id="on hosts that are not restarted"),
        pytest.param(drifted("w1", kind="restart"), {"begins": "nobody knows"}, [], 2, [""], id="nobody can tell"),
        pytest.param([*drifted("w1"), item("w2", "person")], {"verdict": "pass"}, ["w1", "look all"], 1,
                     ["repaired, proven", ""], id="an operator is needed, too"),
        pytest.param(drifted("w1"), {"verdict": "pass"}, ["w1", "look all"], 0, ["repaired, proven"],
                     id="one host, which nobody waits for"),
        pytest.param(drifted("w1"), {"fails": {"stays": "w1"}, "verdict": "pass"}, ["w1", "look all"], 5,
                     ["failed: it still differs"], id="one host, and it still differs"),
        pytest.param([*drifted("w1"), item("cluster")], {"verdict": "pass"}, ["w1", "look w1", "own", "look all"], 0,
                     ["repaired, proven"] * 2, id="one host, for which the cluster waits"),
        pytest.param([item("cluster"), NODE_PORT], {"verdict": "pass"}, ["own", "look all"], 1,
                     ["repaired, proven", ""], id="what is nobody's beside what is ours"),
        pytest.param(drifted("w1", kind="person"), {}, [], 1, [""], id="only for an operator"),
    ],
)  # fmt: skip
def test_a_converge(items: list[Item], world: dict[str, Any], calls: list[str], status: int, done: list[str]) -> None:
    there = World(items, **{"fails": {}, **world})
    outcome = carry_out(made(*items), there.hands())
    assert there.calls == calls
    assert outcome.status == status, outcome.notes
    assert [each.done for each in outcome.items] == done


def test_a_converge_over_a_limit_changes_nothing() -> None:
    items = drifted(*HOSTS[:6])
    there = World(items, {})
    outcome = carry_out(made(*items, settings={"max_hosts": "20%"}), there.hands())
    assert (outcome.status, there.calls, outcome.repaired) == (3, [], ())
    assert outcome.limits[0].startswith("6 of 10 hosts have drifted")


def test_a_repair_that_does_not_last_counts_as_one() -> None:
    """So that an item that comes back at once is left to an operator after three converges."""
    items = drifted("w1", "w2")
    outcome = carry_out(made(*items), World(items, {"stays": "w2"}).hands())
    assert (outcome.status, outcome.repaired) == (5, tuple(each.key for each in items))
