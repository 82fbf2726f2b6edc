"""The lab: what is planned for which nodes, networks and machines; nothing is started here."""

from __future__ import annotations

import ipaddress
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.lab import host, keys, lab_model, lab_nodes, network

PARAMETERS = {
    "name": "lab",
    "subnet": "10.99.0.0/24",
    "nodes": {"one": "10.99.0.21", "two": "10.99.0.22"},
    "volumes": ["/var/lib/containerd"],
    "image": {"layout": "/nowhere", "digest": "sha256:0123"},
}
RUNNING = {"StartedAt": "2026-01-01T00:00:00Z", "Running": True, "Status": "running", "Pid": 100}
"""A container whose first process is there."""
LOST = RUNNING | {"Pid": 101}
"""The engine believes that it runs, and there is no such process."""
TAKEN = RUNNING | {"Pid": 102}
"""The engine believes that it runs, and its process number is another's by now."""
MADE = {"StartedAt": "0001-01-01T00:00:00Z", "Running": False, "Status": "created", "Pid": 0}


@pytest.fixture
def lab(tmp_path: Path) -> lab_model.Lab:
    return lab_model.parse({**PARAMETERS, "state_dir": str(tmp_path / "lab")})


class Engine:
    """Stands in for podman: answers by the first words, and remembers what it was asked."""

    def __init__(self, **answers: tuple[int, str]) -> None:
        self.answers = answers
        self.calls: list[tuple[str, ...]] = []

    def __call__(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        self.calls.append(arguments)
        status, output = self.answers.get("_".join(arguments[:2]), (0, ""))
        return subprocess.CompletedProcess(arguments, status, output, "")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": "Lab 1"}, "'Lab 1' is not valid"),
        ({"state_dir": "/var/lib"}, "/var/lib, which is removed with the lab, does not have the lab's name lab"),
        ({"subnet": "10.99.0.0/33"}, "'10.99.0.0/33' is not an IPv4 network"),
        ({"nodes": {"one": "10.98.0.1"}}, r"10\.98\.0\.1 of one is not a node address in the lab's subnet"),
        ({"nodes": {"one": "here"}}, "'here' of one is not an IPv4 address"),
        ({"nodes": {"../../x": "10.99.0.5"}}, r"node name '\.\./\.\./x'"),
        ({"nodes": {"one": "10.99.0.1"}}, r"10\.99\.0\.1 of one"),
        ({"nodes": {"one": "10.99.0.5", "two": "10.99.0.5"}}, r"the same address: 10\.99\.0\.5"),
    ],
)
def test_labs_that_cannot_be_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(TrainyardError, match=message):
        lab_model.parse({**PARAMETERS, "state_dir": "/nowhere/lab", **changed})


def test_two_labs_share_no_name(lab: lab_model.Lab) -> None:
    other = lab_model.parse({**PARAMETERS, "name": "lab-2", "state_dir": "/nowhere/lab-2"})
    for one, two in ((lab.network, other.network), (lab.table, other.table)):
        assert one != two
    node = lab.nodes[0]
    assert lab.container(node) != other.container(node)
    assert lab.volume(node, "/var/lib/x") != other.volume(node, "/var/lib/x")


@pytest.mark.parametrize(
    ("found", "states", "steps"),
    [
        ({}, ["absent", "absent"], ["Create the node one at 10.99.0.21", "Create the node two at 10.99.0.22"]),
        ({"lab-one": RUNNING, "lab-two": RUNNING}, ["running", "running"], []),
        ({"lab-one": RUNNING, "lab-two": LOST}, ["running", "stopped"], ["Start the node two"]),
        ({"lab-one": TAKEN, "lab-two": RUNNING}, ["stopped", "running"], ["Start the node one"]),
        (
            {"lab-one": RUNNING, "lab-two": MADE},
            ["running", "absent"],
            ["Remove the unfinished node two", "Create the node two at 10.99.0.22"],
        ),
    ],
)
def test_nodes(
    lab: lab_model.Lab,
    found: dict[str, Any],
    states: list[str],
    steps: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    for pid, group in ((100, "/libpod_parent/libpod-c0ffee/init.scope"), (102, "/user.slice")):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "cgroup").write_text(f"9:name=systemd:{group}\n", encoding="utf-8")
    monkeypatch.setattr(lab_nodes, "PROC", tmp_path)
    monkeypatch.setattr(lab_nodes, "podman", Engine(container_exists=(1, "")))
    plan, seen = lab_nodes.plan_nodes(lab, {name: {"Id": "c0ffee", "State": state} for name, state in found.items()})
    assert list(seen.values()) == states
    assert [step.what for step in plan] == steps


def test_somebody_elses_container_is_refused(lab: lab_model.Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab_nodes, "podman", Engine(container_exists=(0, "")))
    with pytest.raises(TrainyardError, match="lab-one that no lab made"):
        lab_nodes.plan_nodes(lab, {})


def test_only_the_named_nodes_are_removed(lab: lab_model.Lab) -> None:
    one = lab_model.parse({**PARAMETERS, "nodes": {"one": "10.99.0.21"}, "state_dir": str(lab.state_dir)})
    steps = [step.what for step in lab_nodes.plan_node_removal(one, ["lab-one", "lab-two"])]
    assert steps == ["Remove the container lab-one", "Remove the volumes of one"]
    assert lab_nodes.plan_node_removal(one, ["lab-two"]) == []


@pytest.mark.parametrize(
    ("home", "beside", "left"),
    [("home", [], []), ("home", ["other"], ["home", "home/other"]), ("elsewhere", [], ["elsewhere"])],
)
def test_the_state_goes_and_what_is_beside_it_stays(
    home: str, beside: list[str], left: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "HOME", tmp_path / "home")
    for name in ["lab/ssh", *beside]:
        (tmp_path / home / name).mkdir(parents=True)
    lab = lab_model.parse({**PARAMETERS, "state_dir": str(tmp_path / home / "lab")})
    lab.marker.write_text("lab", encoding="utf-8")
    (step,) = keys.plan_state_removal(lab)
    step.act()
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == left
    assert keys.plan_state_removal(lab) == []


@pytest.mark.parametrize(
    ("label", "subnet", "message"),
    [("lab", "10.99.0.0/24", ""), ("other", "10.99.0.0/24", "that no lab made"), ("lab", "10.1.0.0/24", "inventory")],
)
def test_network(lab: lab_model.Lab, label: str, subnet: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [{"labels": {lab_model.LABEL: label}, "subnets": [{"subnet": subnet}], "network_interface": "br0"}]
    monkeypatch.setattr(network, "podman", Engine(network_inspect=(0, json.dumps(found))))
    if message:
        with pytest.raises(TrainyardError, match=message):
            network.plan(lab)
    else:
        assert network.plan(lab) == ([], "present")


def test_a_network_of_this_machine_is_refused(lab: lab_model.Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "podman", Engine(network_inspect=(125, "")))
    monkeypatch.setattr(network, "_host_networks", lambda: [("eth7", ipaddress.IPv4Network("10.0.0.0/8"))])
    with pytest.raises(TrainyardError, match=r"overlaps 10\.0\.0\.0/8 on this machine's interface eth7"):
        network.plan(lab)


def test_keys_are_made_once_and_other_nodes_stay_known(lab: lab_model.Lab) -> None:
    def run_plan(which: lab_model.Lab) -> int:
        steps = keys.plan_keys(which)
        for step in steps:
            step.act()
        return len(steps)

    assert run_plan(lab) == 4
    assert run_plan(lab) == 0
    third = lab_model.parse({**PARAMETERS, "nodes": {"three": "10.99.0.23"}, "state_dir": str(lab.state_dir)})
    assert run_plan(third) == 2
    pinned = [line.split()[0] for line in lab.known_hosts.read_text(encoding="utf-8").splitlines()]
    assert pinned == ["10.99.0.21", "10.99.0.22", "10.99.0.23"]
    keys.forget(third, third.nodes[0])
    assert "10.99.0.23" not in lab.known_hosts.read_text(encoding="utf-8")


@pytest.mark.parametrize(("kmsg", "expected"), [(True, True), (False, False)])
def test_options_follow_the_machine(kmsg: bool, expected: bool) -> None:
    arguments = host.run_arguments(host.HostFacts(1, 20000, 4096, "/usr/sbin/runc", kmsg))
    assert ("--volume=/dev/kmsg:/dev/kmsg" in arguments) is expected
    assert {"--ulimit=nofile=20000:20000", "--ulimit=nproc=4096:4096", "--systemd=false"} <= set(arguments)


def test_a_hardware_address_belongs_to_the_address(lab: lab_model.Lab) -> None:
    assert [node.mac for node in lab.nodes] == ["02:42:0a:63:00:15", "02:42:0a:63:00:16"]


@pytest.mark.parametrize(("limit", "steps"), [(128, 1), (host.INOTIFY_INSTANCES, 0)])
def test_too_few_inotify_instances_are_raised(
    limit: int, steps: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    setting = tmp_path / "max_user_instances"
    setting.write_text(f"{limit}\n", encoding="ascii")
    monkeypatch.setattr(host, "INOTIFY", setting)
    plan = host.plan_inotify()
    for step in plan:
        step.act()
    assert len(plan) == steps
    assert int(setting.read_text(encoding="ascii")) == host.INOTIFY_INSTANCES
