"""The roles of GPU hosts in check mode, on hosts that are this machine: what they would do, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.playbooks.runs import ROOT, copy, play

# Two seconds and more for each start of Ansible.
pytestmark = pytest.mark.slow

FAKES = {
    "kube_apply": """
import json, os, uuid
from pathlib import Path
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule({"kubeconfig": {}, "definitions": {"type": "list"}}, supports_check_mode=True)
Path(os.environ["TOUCHED"], uuid.uuid4().hex).write_text(json.dumps(module.params["definitions"]))
module.exit_json(changed=True)
""",
    "nvidia_host": """
from ansible.module_utils.basic import AnsibleModule
names = ("host", "branch", "open_modules")
AnsibleModule({name: {} for name in names}, supports_check_mode=True).exit_json(
    changed=False, kernel="6.12", headers=True, nouveau=True, loaded="", on_disk="", gpus=["10de:1eb8"]
)
""",
    "apt_packages": """
import os, uuid, json
from pathlib import Path
from ansible.module_utils.basic import AnsibleModule
lists = {name: {"type": "list", "default": []} for name in ("packages", "may_remove")}
module = AnsibleModule({**lists, "hold": {"type": "bool"}, "timeout": {}}, supports_check_mode=True)
Path(os.environ["TOUCHED"], uuid.uuid4().hex).write_text(json.dumps([module.params]))
module.exit_json(changed=True, steps=["Install"])
""",
    "distribution": """
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule({"name": {}}, supports_check_mode=True)
facts = {"distribution": module.params["name"], "distribution_release": "trixie"}
module.exit_json(changed=False, ansible_facts=facts)
""",
    "gpu_info": """
import json, os, uuid
from pathlib import Path
from ansible.module_utils.basic import AnsibleModule
facts = {"gpus": [{}, {}], "driver": "580.95.05", "skew": False, "healthy": True}
module = AnsibleModule({"binding": {}, "textfile": {"type": "path"}}, supports_check_mode=True)
if module.params["textfile"]:
    Path(os.environ["TOUCHED"], uuid.uuid4().hex).write_text(json.dumps([module.params["textfile"]]))
module.exit_json(changed=False, ansible_facts={"gpus": facts})
""",
}
"""Stand for modules that need a cluster, a package archive or a GPU: leave what they were given in a file."""

PLAY = """
- hosts: {hosts}
  gather_facts: false
  tasks:
    - distribution: {{name: {distribution}}}
    - ansible.builtin.include_role:
        name: {role}
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


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = copy(tmp_path_factory.mktemp("checkout"))
    (folder / "roles").symlink_to(ROOT / "roles")
    (folder / "bundle.lock.yml").symlink_to(ROOT / "bundle.lock.yml")
    (folder / "plugins" / "action" / "gpu_info.py").unlink()
    for name in ("host_files", "node_drain"):
        (folder / "library" / f"{name}.py").symlink_to(ROOT / "library" / f"{name}.py")
    for name, text in FAKES.items():
        (folder / "library" / f"{name}.py").write_text(text, encoding="utf-8")
    return folder


def run(
    checkout: Path, folder: Path, role: str, *arguments: str, distribution: str = "Debian", hosts: str = "gpu_nodes"
) -> Any:
    """Status, what the fakes were given, and the output."""
    (folder / "gpus.yml").write_text(GPUS, encoding="utf-8")
    play_file = checkout / "playbooks" / "one_role.yml"
    play_file.write_text(PLAY.format(role=role, distribution=distribution, hosts=hosts), encoding="utf-8")
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


def test_a_gpu_is_not_shared_by_one(checkout: Path, tmp_path: Path) -> None:
    status, objects, output = run(checkout, tmp_path, "device_plugin", "-e", '{"device_plugin_replicas": 1}')
    assert status != 0
    assert "device_plugin_replicas is 1 for w1: sharing is between 2 pods or more" in output
    assert not [each for each in objects if each.get("metadata", {}).get("name") == "w1"]


@pytest.mark.parametrize(
    ("distribution", "variables", "packages"),
    [
        ("Debian", "nvidia_driver_source=nvidia", ["nvidia-kernel-open-dkms=580.*", "nvidia-driver-cuda=580.*"]),
        ("Ubuntu", "nvidia_driver_source=nvidia nvidia_driver_branch=570",
         ["nvidia-dkms-570-open", "libnvidia-compute-570", "nvidia-utils-570"]),
        ("Debian", "nvidia_driver_source=distro", ["nvidia-open-kernel-dkms", "libcuda1", "nvidia-smi"]),
    ],
)  # fmt: skip
def test_the_driver_of_each_source(
    checkout: Path, tmp_path: Path, distribution: str, variables: str, packages: list[str]
) -> None:
    arguments = ("-e", variables)
    status, given, output = run(checkout, tmp_path, "nvidia_driver", *arguments, distribution=distribution, hosts="w1")
    assert status == 0, output
    (asked,) = given
    assert asked["packages"] == packages
    assert asked["hold"] is True
    assert set(asked["may_remove"]).isdisjoint(each.partition("=")[0] for each in packages)
    assert any("dkms" in each for each in asked["may_remove"])


def test_prometheus_is_told_where_the_inventory_says_how(checkout: Path, tmp_path: Path) -> None:
    arguments = ("-e", "nvidia_driver_textfile=/srv/prom/gpus.prom")
    status, given, output = run(checkout, tmp_path, "nvidia_driver", *arguments, hosts="w1")
    assert (status, given) == (0, ["/srv/prom/gpus.prom"]), output


def test_a_driver_that_is_there_is_only_looked_at(checkout: Path, tmp_path: Path) -> None:
    status, given, output = run(checkout, tmp_path, "nvidia_driver", hosts="w1")
    assert (status, given) == (0, []), output
