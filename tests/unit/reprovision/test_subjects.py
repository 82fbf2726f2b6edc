"""What a result is about: the planners of our modules say it, and this reads what they say."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils.trainyard.core.finding import Finding, shown
from ansible.module_utils.trainyard.core.plan import Plan, Step
from ansible.module_utils.trainyard.host.packages import Packages, Seen
from ansible.module_utils.trainyard.host.units import Service, make_plan

from trainyard.reprovision.differences import SHORT, difference
from trainyard.reprovision.subjects import Change, changes


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
            Change("package tool", "1.2-1", "1.2-*"),
            Change("unfinished packages", "Finish the interrupted installation of tool", "installed"),
        ]),
    ],
)  # fmt: skip
def test_packages(status: str | None, version: str, expected: list[Change]) -> None:
    seen = {"tool": Seen(status, version)} if status else {}
    plan = Packages({"tool": "1.2-*"}, hold=True).plan(seen)
    assert (changes(event("apt_packages", plan)) if plan.changed else []) == expected


DO = Step("Do it", lambda: None)


@pytest.mark.parametrize(
    ("module", "plan", "expected"),
    [
        ("oci_push", Plan([DO], {"r/a:1": None, "r/b:1": "x"}, {"r/a:1": "d", "r/b:1": "x"}),
         Change("image r/a:1", "missing", "d")),
        ("containerd_images", Plan([DO], {"pinned": {"r/a:1": False}}, {"pinned": {"r/a:1": True}}),
         Change("image r/a:1", "no", "yes")),
        ("kubelet_certificates", Plan([DO], {"csr-1": "pending"}, {"csr-1": "approved"}),
         Change("certificate of csr-1", "pending", "approved")),
        ("kube_prune", Plan([DO], ["Role a/b", "Role a/c"], ["Role a/c"]), Change("Role a/b", "there", "missing")),
        ("kube_apply", Plan([DO], {"Deployment a/b": "absent"}, {"Deployment a/b": {"kind": "Deployment"}}),
         Change("Deployment a/b", "missing", "there")),
        ("kube_apply",
         Plan([DO], {"Deployment a/b": {"spec": {"replicas": 0}}}, {"Deployment a/b": {"spec": {"replicas": 1}}}),
         Change("Deployment a/b", "spec.replicas: 0", "spec.replicas: 1")),
        ("kubeadm_init", Plan([Step("Leave the kubelet's configuration to its owner", bool)], {}, {}),
         Change("mode of /var/lib/kubelet/config.yaml", "readable by others", "its owner's alone")),
        ("kubeadm_init", Plan([Step("Keep the configuration that is asked for in /x", bool)], {}, {}),
         Change("kubeadm configuration", "that of the cluster", "another one in the inventory")),
        ("kubeadm_join", Plan([Step("Join the cluster (kubeadm join)", bool)], {}, {}),
         Change("membership of the cluster", "missing", "Join the cluster (kubeadm join)")),
        ("training",
         Plan([Step("Run training mnist: 1 chief", bool)], {"training": {"hash": "a"}}, {"training": {"hash": "b"}}),
         Change("run of mnist", "hash: a", "hash: b")),
        ("kernel_settings", Plan([DO], {"br_netfilter": "not loaded"}, {"br_netfilter": "loaded"}),
         Change("kernel module br_netfilter", "not loaded", "loaded")),
        ("kernel_settings", Plan([DO], {"swap": ["/dev/sda2"]}, {"swap": []}), Change("swap", "/dev/sda2", "-")),
        ("host_files", Plan([Step("Run update-ca-certificates", bool)], {}, {}),
         Change("update-ca-certificates", "not run", "run")),
    ],
)  # fmt: skip
def test_plans(module: str, plan: Plan, expected: Change) -> None:
    assert changes(event(module, plan)) == [expected]


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
