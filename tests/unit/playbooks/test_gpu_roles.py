"""The role device_plugin in check mode: what it would do, and what it refuses."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.playbooks.gpu_runs import checkout, run

__all__ = ["checkout"]

# Two seconds and more for each start of Ansible.
pytestmark = pytest.mark.slow


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
    assert "device_plugin_replicas is 1 for w1: at least 2 pods share a GPU" in output
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
    assert "Find the plugin's pod" in output
    assert [each["metadata"]["labels"]["trainyard.dev/gpu"] for each in given] == ["ready"]


@pytest.mark.parametrize(
    ("printed", "siblings"),
    [
        ("ii  nvidia-container-toolkit\nrc  libnvidia-container1\nhi  libnvidia-container-tools\n",
         ["nvidia-container-toolkit", "libnvidia-container-tools"]),
        ("", []),
    ],
)  # fmt: skip
def test_an_older_toolkit_is_upgraded_with_its_siblings(
    printed: str, siblings: list[str], checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the packages alone would remove the others, which Docker on that host needs."""
    program = tmp_path / "bin" / "dpkg-query"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nprintf '{printed}'\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    status, given, output = run(
        checkout, tmp_path, "nvidia_runtime", "-e", "nvidia_runtime_version=1.20.1", entry="install", hosts="w1"
    )
    assert status == 0, output
    (asked,) = given
    wanted = ["nvidia-container-toolkit-base", *siblings]
    assert asked["packages"] == [f"{name}=1.20.1-*" for name in wanted] and asked["hold"] is True
