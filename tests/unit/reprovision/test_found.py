"""From recorded events of ansible-core 2.19 to items: streams/*.jsonl, which record.py writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainyard.core.plan import Plan, Step
from trainyard.drift.find import CONNECTION, Found, _message, find
from trainyard.drift.playbook_runner import Event, Reader
from trainyard.drift.subjects import HIDDEN, hidden_subject
from trainyard.host.packages import Packages, Seen
from trainyard.host.units import Service, make_plan

STREAMS = Path(__file__).resolve().parent / "streams"


def raws(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (STREAMS / f"play_{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def events(name: str) -> list[Event]:
    reader = Reader()
    return [found for raw in raws(name) if (found := reader.read(raw))]


@pytest.fixture(scope="module")
def hosts() -> Found:
    return find(events("hosts"))


@pytest.mark.parametrize(
    ("host", "task", "subject", "before", "after"),
    [
        ("worker1", "Write files", "/etc/site/edited.conf", "a=0", "a=1"),
        ("worker2", "Write files", "/etc/site/edited.conf", "a=0", "a=1"),
        ("worker1", "Write files", "/etc/site/new.conf", "missing", "there"),
        ("worker1", "Write files", "/etc/site/secret.key", "missing", "there"),
        ("worker1", "Write files", "/etc/site/stale.conf", "present", "missing"),
        ("worker1", "Copy", "/etc/site/one", "missing", "there"),
        ("worker1", "Copy", "/etc/site/two", "missing", "there"),
        ("worker1", "Copy in secret by turns", hidden_subject("copy"), HIDDEN, HIDDEN),
        ("controller", "Make a folder on the controller", "/etc/site/there", "state: missing", "state: directory"),
    ],
)
def test_a_change_is_an_item(hosts: Found, host: str, task: str, subject: str, before: str, after: str) -> None:
    (item,) = [each for each in hosts.items if (each.host, each.task, each.subject) == (host, task, subject)]
    assert (item.before, item.after) == (before, after)


def test_nothing_else_is_an_item(hosts: Found) -> None:
    """Neither what was ignored or rescued, nor what was only looked at, nor the end of a loop."""
    assert {(each.host, each.task) for each in hosts.items} == {
        ("worker1", "Write files"),
        ("worker2", "Write files"),
        ("worker1", "Copy"),
        ("worker1", "Copy in secret by turns"),
        ("controller", "Make a folder on the controller"),
        ("worker2", "Refuse a host"),
        ("worker3", "Reach the host"),
    }
    assert len(hosts.items) == 14


def test_a_host_that_is_refused_or_not_reached_is_an_item_and_not_the_end(hosts: Found) -> None:
    (refused,) = [each for each in hosts.items if each.task == "Refuse a host"]
    assert (refused.host, refused.kind, refused.reason) == ("worker2", "person", "worker2 is too small")
    (gone,) = [each for each in hosts.items if each.subject == CONNECTION]
    assert (gone.host, gone.kind) == ("worker3", "person") and "Connection refused" in gone.reason
    assert (hosts.refused, hosts.unreached, hosts.ended) == (["worker2"], ["worker3"], True)
    assert hosts.seen == ["worker1", "worker2", "worker3"]


def test_a_program_that_reads_a_changed_file_is_a_consequence(hosts: Found) -> None:
    assert sorted((each.host, each.what) for each in hosts.consequences) == [
        (host, "true reads: run") for host in ("worker1", "worker2")
    ]


def test_what_the_controller_does_for_a_host_names_that_host(hosts: Found) -> None:
    assert [each.via for each in hosts.items if each.host == "controller"] == ["worker1"]


def test_a_cluster_that_cannot_be_asked_is_no_drift() -> None:
    found = find(events("cluster"))
    assert [(each.host, each.subject) for each in found.items] == [("controller", "true --all")]
    assert len(found.blind) == 1 and "no kubeconfig" in found.blind[0]


def test_a_task_of_a_role_has_its_class() -> None:
    (item,) = find(events("role")).items
    assert (item.role, item.module, item.subject) == ("base", "kernel_settings", "sysctl kernel.ostype")
    assert (item.before, item.after, item.kind, item.reason) == ("Linux", "Plan9", "repairable", "")


def test_secrets_of_no_log_tasks_are_in_no_event() -> None:
    assert "canary" not in json.dumps(raws("hosts"))


def test_a_run_that_was_cut_off_has_not_ended() -> None:
    cut = [each for each in events("hosts") if each["event"] != "playbook_on_stats"]
    found = find(cut)
    assert not found.ended
    # Without the last count nothing says that the first failure was rescued.
    assert found.refused == ["worker1", "worker2"]


def test_a_result_that_came_empty_is_taken_from_what_was_shown() -> None:
    """ansible-runner leaves the result out where it is too long; the difference is another event."""
    stream = raws("role")
    for raw in stream:
        if raw["event"] == "runner_on_ok":
            raw["event_data"]["res"] = {}
    reader = Reader()
    (item,) = find([found for raw in stream if (found := reader.read(raw))]).items
    assert (item.subject, item.after) == ("sysctl kernel.ostype", "Plan9")


def result(role: str, module: str, plan: Plan, **arguments: str) -> Event:
    steps = [step.what for step in plan.steps]
    return {
        "event": "runner_on_ok", "host": "worker1", "role": role, "task": "Do it", "module": module, "changed": True,
        "hidden": False, "ignored": False, "looped": False, "delegated": "",
        "result": {"diff": plan.diff(), "steps": steps, "arguments": arguments},
    }  # fmt: skip


def test_an_object_that_several_roles_apply_is_one_item_of_the_first() -> None:
    def labels(after: str) -> Plan:
        return Plan([Step("Update it", bool)], {"Namespace t": {"a": "0"}}, {"Namespace t": {"a": after}})

    roles = (("dashboard", "kube_apply"), ("storage", "kube_apply"), ("workloads", "training"))
    stream = [result(role, module, labels("1")) for role, module in roles]
    other = result("metrics", "kube_apply", labels("2"))
    found = find([*stream, other, result("base", "host_files", labels("1"))]).items
    assert [(each.host, each.role) for each in found] == [
        ("cluster", "dashboard"), ("cluster", "metrics"), ("worker1", "base"),
    ]  # fmt: skip


FILE = result(
    "containerd", "host_files",
    Plan([Step("Write it", bool)], {"/etc/c/conf.d/10.toml": None}, {"/etc/c/conf.d/10.toml": {"text": []}}),
)  # fmt: skip
PACKAGE = result("containerd", "apt_packages", Packages({"c": "2-*"}).plan({"c": Seen("ii", "1-1")}))


@pytest.mark.parametrize(
    ("before", "newer", "alone"),
    [
        ([], ["/etc/c/conf.d/10.toml"], True),
        ([FILE], ["/etc/c/conf.d/10.toml"], False),
        ([FILE], ["/etc/c/conf.d", "/etc/c/conf.d/10.toml"], False),
        ([FILE], ["/etc/c/conf.d/10.toml", "/etc/c/conf.d/99-of-a-stranger.toml"], True),
        ([PACKAGE], ["/usr/bin/c"], False),
        ([FILE], ["/usr/bin/c"], True),
    ],
)
def test_a_restart_follows_from_what_the_run_puts_right(before: list[Event], newer: list[str], alone: bool) -> None:
    seen = {"LoadState": "loaded", "ActiveState": "active", "UnitFileState": "enabled"}
    plan = make_plan(Service("c.service"), seen, check_mode=True, newer=lambda *_: newer)
    found = find([*before, result("containerd", "systemd_unit", plan, name="c.service")])
    restarts = [each for each in found.items if each.subject == "c.service restart"]
    assert (len(restarts), len(found.consequences)) == ((1, 0) if alone else (0, 1))


def test_the_frame_round_what_ssh_says_of_another_key_is_left_out() -> None:
    frame = "@" * 59
    event: Any = {"result": {"msg": f"Task failed: {frame}\n@ WARNING: IT HAS CHANGED! @\n{frame}\nroot@host is known"}}
    assert _message(event, "") == "WARNING: IT HAS CHANGED! root@host is known"
