"""The roles of GPU hosts in check mode, on hosts that are this machine: what they would do, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.trainyard.host.packages import Packages

from tests.unit.playbooks.gpu_fakes import FAKES, OTHER_DRIVERS, STAYS
from tests.unit.playbooks.runs import ROOT, copy, play

# Two seconds and more for each start of Ansible.
pytestmark = pytest.mark.slow

PLAY = """
- hosts: {hosts}
  gather_facts: false
  tasks:
    - distribution: {{name: {distribution}}}
    - ansible.builtin.include_role:
        name: {role}
        tasks_from: {entry}
"""

GPUS = """
all:
  vars: {supply: mirror}
  children:
    gpu_nodes:
      hosts:
        w1: {device_plugin_sharing: time_slicing, device_plugin_replicas: 4}
        w2: {kubernetes_node_name: second, device_plugin_mig_strategy: single}
"""


PIN, NOUVEAU = "/etc/apt/preferences.d/trainyard-nvidia-driver", "/etc/modprobe.d/trainyard-nouveau.conf"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = copy(tmp_path_factory.mktemp("checkout"))
    (folder / "roles").symlink_to(ROOT / "roles")
    (folder / "bundle.lock.yml").symlink_to(ROOT / "bundle.lock.yml")
    (folder / "plugins" / "action" / "gpu_info.py").unlink()
    for name, text in FAKES.items():
        (folder / "library" / f"{name}.py").write_text(text, encoding="utf-8")
    return folder


def run(
    checkout: Path,
    folder: Path,
    role: str,
    *arguments: str,
    distribution: str = "Debian",
    hosts: str = "gpu_nodes",
    entry: str = "main",
) -> Any:
    """Status, what the fakes were given, and the output."""
    (folder / "gpus.yml").write_text(GPUS, encoding="utf-8")
    play_file = checkout / "playbooks" / "one_role.yml"
    play_file.write_text(PLAY.format(role=role, distribution=distribution, hosts=hosts, entry=entry), encoding="utf-8")
    arguments = ("-i", str(folder / "gpus.yml"), "--check", *arguments)
    status, touched, output = play(checkout, folder, "playbooks/one_role.yml", *arguments)
    given = [json.loads((folder / "touched" / name).read_text(encoding="utf-8")) for name in touched]
    return status, [each for part in given for each in part], output


def test_each_setting_has_its_plugin_and_each_node_its_labels(checkout: Path, tmp_path: Path) -> None:
    status, objects, output = run(checkout, tmp_path, "device_plugin")
    assert status == 0, output
    labels = {each["metadata"]["name"]: each["metadata"]["labels"] for each in objects if each["kind"] == "Node"}
    assert labels == {
        "w1": {"trainyard.dev/gpu": "ready", "trainyard.dev/gpu-setting": "shared-4"},
        "second": {"trainyard.dev/gpu": "ready", "trainyard.dev/gpu-setting": "whole-mig-single"},
    }
    sets = {each["metadata"]["name"]: each for each in objects if each["kind"] == "DaemonSet"}
    assert sets.keys() == {"nvidia-device-plugin-shared-4", "nvidia-device-plugin-whole-mig-single"}
    pod = sets["nvidia-device-plugin-shared-4"]["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"trainyard.dev/gpu": "ready", "trainyard.dev/gpu-setting": "shared-4"}
    assert pod["automountServiceAccountToken"] is False
    assert {each["image"] for each in pod["containers"]} == {"nvcr.io/nvidia/k8s-device-plugin:v0.19.3"}
    mounted = {each["name"] for container in pod["containers"] for each in container["volumeMounts"]}
    assert mounted == {each["name"] for each in pod["volumes"]}
    configs = {
        each["metadata"]["name"]: yaml.safe_load(each["data"]["config.yaml"])
        for each in objects
        if each["kind"] == "ConfigMap"
    }
    assert configs["nvidia-device-plugin-whole-mig-single"] == {"version": "v1", "flags": {"migStrategy": "single"}}
    sharing = configs["nvidia-device-plugin-shared-4"]["sharing"]["timeSlicing"]
    assert sharing["resources"] == [{"name": "nvidia.com/gpu", "replicas": 4}]


def test_a_gpu_that_is_to_be_divided_and_is_not_is_refused(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUS", json.dumps({"gpus": [{"mig": "enabled", "mig_devices": 0}]}))
    status, given, output = run(checkout, tmp_path, "device_plugin", hosts="w2")
    assert (status != 0, given) == (True, []), output
    assert "w2 has a GPU in MIG mode without an instance" in output


def test_a_gpu_is_not_shared_by_one(checkout: Path, tmp_path: Path) -> None:
    status, objects, output = run(checkout, tmp_path, "device_plugin", "-e", '{"device_plugin_replicas": 1}')
    assert status != 0
    assert "device_plugin_replicas is 1 for w1: sharing is between 2 pods or more" in output
    assert not [each for each in objects if each.get("metadata", {}).get("name") == "w1"]


@pytest.mark.parametrize(
    ("unhealthy", "policy", "cordoned"), [(0, "cordon", False), (1, "cordon", True), (1, "report", False)]
)
def test_a_node_with_an_unhealthy_gpu_is_cordoned_where_that_is_the_policy(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unhealthy: int, policy: str, cordoned: bool
) -> None:
    monkeypatch.setenv("UNHEALTHY", str(unhealthy))
    arguments = (
        "-e",
        json.dumps({"device_plugin_unhealthy": policy, "ansible_facts": {"gpus": {"skew": False, "gpus": [{}]}}}),
    )
    status, given, output = run(checkout, tmp_path, "device_plugin", *arguments, hosts="w1", entry="ready")
    assert status == 0, output
    assert ({"drain": "cordoned"} in given) == cordoned, output


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"source": "none", "error": "Driver Not Loaded", "gpus": [], "healthy": False}, "does not answer (Driver Not"),
        ({"source": "none", "error": "Driver Not Loaded", "gpus": [], "on_bus": None, "healthy": False}, "not answer"),
        ({"gpus": [{}]}, "shows 1 of 2 GPUs"),
        ({"healthy": False}, "reports a fault"),
        ({"skew": True, "gpus": [], "healthy": False}, "run playbooks/gpu_driver.yml"),
    ],
)
def test_a_node_whose_fault_is_not_gone_is_not_recovered(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, facts: dict[str, Any], said: str
) -> None:
    monkeypatch.setenv("GPUS", json.dumps(facts))
    status, given, output = run(checkout, tmp_path, "device_plugin", hosts="w1", entry="recover")
    assert (status != 0, given) == (True, []), output
    assert "w1 is not recovered: its driver" in output and said in output, output


def test_a_node_whose_library_fits_again_gets_its_plugin_before_anybody_waits_for_it(
    checkout: Path, tmp_path: Path
) -> None:
    _, given, output = run(checkout, tmp_path, "device_plugin", hosts="w1", entry="recover")
    # The plugin's pods are what it asks for next, of which the fakes know nothing.
    assert "Look for the plugin's pod" in output
    assert [each["metadata"]["labels"]["trainyard.dev/gpu"] for each in given] == ["ready"]


@pytest.mark.parametrize(
    ("distribution", "variables", "packages"),
    [
        ("Debian", "nvidia_driver_source=nvidia", ["nvidia-kernel-open-dkms=580.*", "nvidia-driver-cuda=580.*"]),
        ("Ubuntu", "nvidia_driver_source=nvidia nvidia_driver_branch=570",
         ["nvidia-dkms-570-open=570.*", "libnvidia-compute-570=570.*", "nvidia-utils-570=570.*"]),
        ("Debian", "nvidia_driver_source=nvidia nvidia_driver_version=580.105.08",
         ["nvidia-kernel-open-dkms=580.105.08*", "nvidia-driver-cuda=580.105.08*"]),
        ("Debian", "nvidia_driver_source=distro", ["nvidia-open-kernel-dkms", "libcuda1", "nvidia-smi"]),
    ],
)  # fmt: skip
def test_the_driver_of_each_source(
    checkout: Path, tmp_path: Path, distribution: str, variables: str, packages: list[str]
) -> None:
    arguments = ("-e", variables)
    status, given, output = run(checkout, tmp_path, "nvidia_driver", *arguments, distribution=distribution, hosts="w1")
    assert status == 0, output
    (asked,) = [each for each in given if each.get("may_remove")]
    assert ["linux-headers-6.12"] in [each.get("packages") for each in given]
    assert asked["packages"] == packages
    assert asked["hold"] is True
    written = {file["dest"] for each in given for file in each.get("files", ())}
    assert (PIN in written, NOUVEAU in written) == ("source=nvidia" in variables, True)
    goes = Packages({}, may_remove=asked["may_remove"])._may_go
    for name in OTHER_DRIVERS:
        assert goes(name), name
    for name in STAYS:
        assert not goes(name), name


def test_an_installation_that_is_refused_leaves_no_pin(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APT_REFUSES", "Installing it would remove gnome.")
    status, given, output = run(checkout, tmp_path, "nvidia_driver", "-e", "nvidia_driver_source=nvidia", hosts="w1")
    assert status != 0 and "would remove gnome" in output, output
    written = sorted([file["dest"] for file in each["files"]] for each in given if "files" in each)
    assert written == [[], [PIN]], "the pin, and then none; nouveau is left alone"


def test_prometheus_is_told_where_the_inventory_says_how(checkout: Path, tmp_path: Path) -> None:
    arguments = ("-e", "nvidia_driver_textfile=/srv/prom/gpus.prom")
    status, given, output = run(checkout, tmp_path, "nvidia_driver", *arguments, hosts="w1")
    assert (status, given) == (0, ["/srv/prom/gpus.prom"]), output


def test_a_driver_that_is_there_is_only_looked_at(checkout: Path, tmp_path: Path) -> None:
    status, given, output = run(checkout, tmp_path, "nvidia_driver", hosts="w1")
    assert (status, given) == (0, []), output
