"""What a report says: states of hosts, the exit status and the headline."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainyard.drift.find import Consequence, Found
from trainyard.drift.items import Item, from_json
from trainyard.drift.report import begun, finished

REPAIRABLE = Item("w1", "base", "Set", "kernel_settings", "sysctl a", "0", "1", "repairable", first_seen=50.0)
PERSON = Item("w2", "kubernetes", "Install", "apt_packages", "package kubelet", kind="person", reason="upgrade")
HOSTS = ("w1", "w2")


def found(**more: Any) -> Found:
    return Found(**{"seen": list(HOSTS), "ended": True, "verdict": "pass", **more})


def report(what: Found, stopped: str = "") -> dict[str, Any]:
    return finished(begun("report", "report", 100.0), what, what.items, HOSTS, 141.26, stopped=stopped)


@pytest.mark.parametrize(
    ("what", "stopped", "status", "headline"),
    [
        (found(), "", 0, "clean"),
        (found(verdict=None), "", 2, "unknown: the run ended before the verdict, so the check is incomplete"),
        (found(verdict="unknown"), "", 2, "unknown: the verdict is unknown"),
        (found(verdict="unknown", items=[REPAIRABLE]), "", 1, "1 item of drift"),
        (found(items=[REPAIRABLE]), "", 1, "1 item of drift"),
        (found(items=[REPAIRABLE, PERSON]), "", 1, "2 items of drift, 1 for an operator"),
        (found(verdict="fail"), "", 1, "the verdict is fail"),
        (found(unreached=["w2"]), "", 2, "unknown: not reached: w2"),
        (found(unreached=["w2"], items=[REPAIRABLE]), "", 2, "unknown: not reached: w2; 1 item of drift"),
        (found(seen=["w1"]), "", 2, "unknown: not checked: w2"),
        (found(blind=["network: no answer"]), "", 2, "unknown: network: no answer"),
        (found(ended=False), "", 2, "unknown: the run did not finish; not checked: w1, w2"),
        (found(ended=False), "it was stopped", 2, "unknown: it was stopped; not checked: w1, w2"),
        # A host that a role refuses is drift, and no doubt about the others.
        (found(refused=["w2"], items=[PERSON]), "", 1, "1 item of drift, 1 for an operator"),
    ],
)
def test_exit_status_and_headline(what: Found, stopped: str, status: int, headline: str) -> None:
    document = report(what, stopped)
    assert (document["exit_status"], document["headline"]) == (status, headline)


@pytest.mark.parametrize(
    ("what", "states"),
    [
        (found(), {"w1": "clean", "w2": "clean"}),
        (found(items=[REPAIRABLE], unreached=["w2"]), {"w1": "drift", "w2": "unreachable"}),
        (found(refused=["w1"], seen=["w1"]), {"w1": "failed", "w2": "unknown"}),
        (found(ended=False, items=[PERSON]), {"w1": "unknown", "w2": "drift"}),
    ],
)
def test_states_of_hosts(what: Found, states: dict[str, str]) -> None:
    assert {name: host["state"] for name, host in report(what)["hosts"].items()} == states


def test_the_document() -> None:
    what = found(items=[PERSON, REPAIRABLE], consequences=[Consequence("w1", "base", "Set", "x")], problems=["no dns"])
    document = json.loads(json.dumps(report(what)))
    assert (document["schema"], document["state"], document["seconds"]) == (2, "complete", 41.3)
    assert [from_json(each) for each in document["items"]] == [REPAIRABLE, PERSON]
    assert document["hosts"]["w1"] == {"state": "drift", "items": 1}
    assert document["consequences"] == [{"host": "w1", "role": "base", "task": "Set", "what": "x"}]
    assert document["notes"] == ["verdict: no dns"]
    assert begun("report", "converge", 1.0).keys() == document.keys()
