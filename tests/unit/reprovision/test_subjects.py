"""What a result is about: the planners of our modules say it, and this reads what they say."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.core.finding import Finding, shown
from trainyard.core.plan import Plan, Step
from trainyard.drift.subjects import SHORT, Change, changes, difference
from trainyard.host.packages import Packages, Seen
from trainyard.host.units import Service, make_plan


def event(module: str, plan: Plan, **arguments: str) -> dict[str, Any]:
    steps = [step.what for step in plan.steps]
    return {
        "module": module, "task": "part | Do it", "hidden": False,
        "result": {"diff": plan.diff(), "steps": steps, "arguments": arguments},
    }  # fmt: skip


def unit(newer: list[str] | None = None, restart: bool = False, **seen: str) -> list[Change]:
    found = {"LoadState": "loaded", "ActiveState": "active", "UnitFileState": "enabled", **seen}
    service = Service("containerd.service", restart=restart)
    plan = make_plan(service, found, check_mode=True, newer=lambda *_: newer or [])
    return changes(event("systemd_unit", plan, name="containerd.service"))


@pytest.mark.parametrize(
    ("seen", "subject", "follows"),
    [
        ({"ActiveState": "inactive"}, "containerd.service running", False),
        ({"UnitFileState": "disabled"}, "containerd.service enabled", False),
        ({"NeedDaemonReload": "yes"}, "containerd.service units", False),
        ({"newer": ["/etc/containerd/config.toml"]}, "containerd.service restart", False),
        ({"restart": True}, "containerd.service restart", True),
        ({"LoadState": "masked", "ActiveState": "inactive"}, "containerd.service masked", False),
    ],
)
def test_units(seen: Any, subject: str, follows: bool) -> None:
    (change,) = unit(**seen)
    assert (change.subject, change.follows) == (subject, follows)


def test_a_restart_names_what_is_newer() -> None:
    (change,) = unit(newer=["/etc/a", "/etc/b"])
    assert change.because == ("/etc/a", "/etc/b") and change.before == "older than /etc/a, /etc/b"


def test_findings_are_changes_beside_the_plans_own() -> None:
    plan = Plan([Step("Leave a to its owner", lambda: None)], {"mode of a": "0644"}, {"mode of a": "0600"})
    found = shown(plan, [Finding("Node laptop", "in the cluster", "unknown to the inventory")])
    assert changes(event("node_findings", found)) == [
        Change("mode of a", "0644", "0600"),
        Change("Node laptop", "in the cluster", "unknown to the inventory"),
    ]
    assert shown(plan, []) is plan


@pytest.mark.parametrize(
    ("status", "version", "expected"),
    [
        (None, "", [Change("package tool", "missing", "1.2-*")]),
        ("hi", "1.1-1", [Change("package tool", "1.1-1", "1.2-*")]),
        ("ii", "1.2-1", [Change("hold of tool", "not held", "held")]),
        ("hi", "1.2-1", []),
        ("hU", "1.2-1", [
            Change("unfinished packages", "tool", "installed"),
            Change("package tool", "1.2-1", "1.2-*"),
        ]),
    ],
)  # fmt: skip
def test_packages(status: str | None, version: str, expected: list[Change]) -> None:
    seen = {"tool": Seen(status, version)} if status else {}
    plan = Packages({"tool": "1.2-*"}, hold=True).plan(seen)
    assert (changes(event("apt_packages", plan)) if plan.changed else []) == expected


DO = Step("Do it", lambda: None)


def named(*changes: Change, by_subject: bool = False) -> Plan:
    return Plan([Step("Do it", lambda: None, changes)], {"state": 1}, {"state": 2}, by_subject=by_subject)


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (named(Change("image r/a:1", None, "d")), Change("image r/a:1", "missing", "d")),
        (named(Change("mount /x", {"unit": "a"}, {"unit": "b"})), Change("mount /x", "unit: a", "unit: b")),
        (named(Change("swap", ["/dev/sda2"], [])), Change("swap", "/dev/sda2", "-")),
        (named(Change("c restart", "older", "restarted", because=("/a",))),
         Change("c restart", "older", "restarted", because=("/a",))),
        (named(Change("program", "not run", "run", follows=True)), Change("program", "not run", "run", follows=True)),
        (named(Change("state", "one", "two"), by_subject=True), Change("state", "one", "two")),
        (Plan([DO], ["Role a/b", "Role a/c"], ["Role a/c"]), Change("Role a/b", "there", "missing")),
        (Plan([DO], {"Deployment a/b": "absent"}, {"Deployment a/b": {"kind": "Deployment"}}),
         Change("Deployment a/b", "missing", "there")),
        (Plan([DO], {"Deployment a/b": {"spec": {"replicas": 0}}}, {"Deployment a/b": {"spec": {"replicas": 1}}}),
         Change("Deployment a/b", "spec.replicas: 0", "spec.replicas: 1")),
    ],
)  # fmt: skip
def test_plans(plan: Plan, expected: Change) -> None:
    assert changes(event("any", plan)) == [expected]


def test_states_are_changes_before_those_of_steps() -> None:
    plan = Plan([DO, Step("Run it", bool, [Change("it", "not run", "run", follows=True)])], {"/a": None}, {"/a": "x"})
    assert [each.subject for each in changes(event("host_files", plan))] == ["/a", "it"]


def test_a_result_that_names_nothing_is_about_its_module() -> None:
    assert changes(event("lab", Plan([DO]))) == [Change("result of lab", after="changed")]


def test_a_result_without_a_difference_is_about_its_arguments() -> None:
    found = {"module": "k8s", "task": "x | Remove", "hidden": False, "result": {
        "arguments": {"kind": "DaemonSet", "name": "plugin", "namespace": "gpu"}, "steps": [],
    }}  # fmt: skip
    assert changes(found) == [Change("DaemonSet gpu/plugin", after="changed")]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (["a=0", "b"], ["a=1", "b"], ("a=0", "a=1")),
        (["a"], ["a", "b", "c"], ("-", "b (+1 lines)")),
        ({"mode": "0644", "text": ["a"]}, {"mode": "0600", "text": ["b"]}, ("mode: 0644", "mode: 0600 (+1 more)")),
        (None, {"mode": "0600"}, ("missing", "there")),
        ("x" * 200, "y", ("x" * (SHORT - 1) + "…", "y")),
        (["\x1b[31m\n<b>"], [], ("\x1b[31m <b>", "-")),
    ],
)
def test_a_difference_shows_the_first_place(before: Any, after: Any, expected: tuple[str, str]) -> None:
    assert difference(before, after) == expected
