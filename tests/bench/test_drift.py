"""Tests of the kinds of drift: complete, of the class in the table, and with false items detected."""

from __future__ import annotations

import json
from typing import Any

import drift
import drift_state
import harm
import inputs
import pytest
from drift_kinds import PROVEN, Kind, strange
from drift_lab import Ran

from trainyard.drift.items import REPAIRED, UNKNOWN, class_of

KINDS = [(name, kind) for name, group in drift.GROUPS.items() for kind in group.kinds]


def rows() -> list[str]:
    lines = drift.PAGE.read_text(encoding="utf-8").partition("<!-- generated drift -->")[2].splitlines()
    table = lines[3 : lines.index("<!-- /generated drift -->")]
    return [line.split(" | ")[0].removeprefix("| ") for line in table]


def test_every_row_of_the_page_is_tried() -> None:
    listed = rows()
    assert len(listed) == len(set(listed)) == 40
    assert {kind.row for _, kind in KINDS} == set(listed)
    assert {kind.row for name, kind in KINDS if drift.GROUPS[name].repaired} == set(listed[:24])


def item(told: str, **more: Any) -> dict[str, Any]:
    host, _, subject = told.partition(" ")
    return {"host": host, "subject": subject, "class": "repairable", "reason": "", "done": "", **more}


def test_kinds_of_a_group_do_not_hide_each_other() -> None:
    for name, group in drift.GROUPS.items():
        found = [pattern for kind in group.kinds for pattern in kind.found]
        assert len(found) == len(set(found)), name


GOOD = drift.Group([Kind("a", ["w1 sysctl a"], lambda stand: None), Kind("b", ["w1 b*"], lambda stand: None)])


def ran(status: int, *items: dict[str, Any]) -> Ran:
    return Ran(status, 1.0, {"items": list(items), "headline": "so it is"})


def test_what_is_missing_false_or_not_repaired_is_said() -> None:
    left = [item("w1 sysctl a"), item("w1 bb")]
    proven = [{**each, "done": PROVEN} for each in left]
    assert drift.problems(GOOD, ran(1, *left), ran(0, *proven)) == []
    assert drift.problems(GOOD, ran(1, left[0]), ran(0, *proven)) == ["b: not found: w1 b*"]
    assert drift.problems(GOOD, ran(1, *left, item("w2 x")), ran(0, *proven)) == ["false item: w2 x"]
    assert drift.problems(GOOD, ran(1, *left), ran(5, *proven)) == ["the converge ended with 5: so it is"]
    assert drift.problems(GOOD, ran(1, *left), ran(0, proven[0], left[1])) == ["b: w1 bb is ''"]
    by_hand = drift.Group(GOOD.kinds, repaired=False)
    assert drift.problems(by_hand, ran(1, *left), ran(1, *left)) == []
    assert drift.problems(by_hand, ran(1, *left), ran(1, proven[0], left[1])) == [f"a: w1 sysctl a is '{PROVEN}'"]
    assert drift.row(GOOD.kinds[0], GOOD, ran(1, *left), ran(0, *proven)) == [
        "a", "w1 sysctl a", "repairable", PROVEN,
    ]  # fmt: skip
    assert strange(GOOD.kinds, [item("w1 bbb")]) == []


@pytest.mark.parametrize(
    ("role", "module", "told"),
    [
        ("base", "kernel_settings", "worker1 sysctl net.ipv4.ip_forward"),
        ("storage", "kube_apply", "cluster Namespace trainings"),
        ("containerd", "systemd_unit", "worker1 containerd.service enabled"),
        ("control_plane", "copy", "controller values of copy, not shown"),
        ("kubernetes", "systemd_unit", "cp1 kubelet.service masked"),
        ("control_plane", "cluster_findings", "cluster Service default/shop"),
        ("control_plane", "cluster_findings", "cluster ClusterRoleBinding mallory"),
        ("control_plane", "cluster_findings", "cluster Pod default/miner"),
        ("control_plane", "cluster_findings", "cluster MutatingWebhookConfiguration spy"),
        ("base", "kernel_settings", "machine1 swap"),
        ("base", "systemd_unit", "machine1 chrony.service running"),
        ("control_plane", "node_findings", "cp1 etcd member cp3"),
    ],
)
def test_a_kind_is_of_the_class_that_its_group_says(role: str, module: str, told: str) -> None:
    kind, reason = class_of(role, module, told.partition(" ")[2], "0")
    (group,) = {name for name, each in KINDS if each.mine([item(told)]) and name != "kubeconfig"}
    assert (kind in REPAIRED) is drift.GROUPS[group].repaired and reason != UNKNOWN


def test_what_has_changed_is_shown_by_its_lines() -> None:
    before = {"worker1": "/etc/a 644\n/etc/b 644", "cluster": "x"}
    assert drift_state.changed(before, before) == {}
    after = {**before, "worker1": "/etc/a 600\n/etc/b 644"}
    assert drift_state.changed(before, after) == {"worker1": "-/etc/a 644; +/etc/a 600"}


def test_what_controllers_write_is_no_change() -> None:
    one = {"kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": "1", "managedFields": []}, "data": {}}
    two = {**one, "metadata": {"name": "a", "resourceVersion": "2"}, "status": {"phase": "x"}}
    assert drift_state.lasting(one) == drift_state.lasting(two) != drift_state.lasting({**one, "data": {"a": "b"}})
    assert json.dumps(drift_state.lasting(one))


@pytest.mark.parametrize("revision", harm.BAD, ids=lambda revision: revision.words)
def test_a_bad_revision_changes_what_it_means_to(revision: harm.Bad) -> None:
    template = (inputs.ROOT / harm.CONTAINERD).read_text(encoding="utf-8")
    assert template.count(revision.old) == 1 and revision.new not in template
