"""gpu_driver.yml and gpu_recover.yml, called as users call them: a node that was not confirmed is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.playbooks.runs import ROOT, copy, play

# Two seconds and more for each start of Ansible.
pytestmark = pytest.mark.slow

GPUS = "all: {children: {gpu_nodes: {hosts: {w1: }}}}\n"

FAKE = """
import os
from pathlib import Path
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule({name: {} for name in ("kubeconfig", "name", "state", "delete_empty_dir", "timeout")})
Path(os.environ["TOUCHED"], f"{module.params['state'] or 'drained'}-{module.params['name']}").touch()
module.exit_json(changed=True, steps=[])
"""
"""Stands for the module that drains: leaves a file."""

ROLE = """
- ansible.builtin.copy:
    content: ""
    dest: "{{ lookup('env', 'TOUCHED') }}/%s-{{ inventory_hostname }}"
"""


TODO = """
- ansible.builtin.set_fact:
    __nvidia_driver_todo: "{{ todo | default(['Install']) }}"
"""
"""What the role finds to change: by default something."""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = copy(tmp_path_factory.mktemp("checkout"))
    (folder / "library" / "node_drain.py").write_text(FAKE, encoding="utf-8")
    for role, entries in {
        "nvidia_driver": ["compare", "change"],
        "nvidia_runtime": ["main"],
        "device_plugin": ["main", "recover"],
    }.items():
        for entry in entries:
            tasks = folder / "roles" / role / "tasks" / f"{entry}.yml"
            tasks.parent.mkdir(parents=True, exist_ok=True)
            tasks.write_text(ROLE % entry + (TODO if entry == "compare" else ""), encoding="utf-8")
    assert (ROOT / "roles" / "nvidia_driver" / "tasks" / "change.yml").exists()
    return folder


def call(checkout: Path, folder: Path, playbook: str, arguments: str) -> tuple[int, set[str], str]:
    (folder / "gpus.yml").write_text(GPUS, encoding="utf-8")
    return play(checkout, folder, f"playbooks/{playbook}", "-i", str(folder / "gpus.yml"), *arguments.split())


@pytest.mark.parametrize("playbook", ["gpu_driver.yml", "gpu_recover.yml"])
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param("", "gpu_node is ''", id="nothing named"),
        pytest.param("-e gpu_node=w2 -e gpu_confirm=w2", "gpu_node is 'w2'", id="no GPUs"),
        pytest.param("-e gpu_node=w2 -e gpu_confirm=w2 --limit w2", "w2 is not", id="no GPUs, limit"),
        pytest.param("-e gpu_node=w1", "w1 is not", id="unconfirmed"),
        pytest.param("-e gpu_node=w1 -e gpu_confirm=w2", "w1 is not", id="another confirmed"),
        pytest.param("-e gpu_node=workers -e gpu_confirm=workers --limit w1", "w1 is not", id="a group"),
    ],
)
def test_a_node_that_is_not_confirmed_is_left_alone(
    checkout: Path, tmp_path: Path, playbook: str, arguments: str, said: str
) -> None:
    status, touched, output = call(checkout, tmp_path, playbook, arguments)
    assert (status != 0, touched) == (True, set()), output
    assert said in output, output


def test_a_driver_is_changed_on_the_empty_node(checkout: Path, tmp_path: Path) -> None:
    status, touched, output = call(checkout, tmp_path, "gpu_driver.yml", "-e gpu_node=w1 -e gpu_confirm=w1")
    assert status == 0, output
    assert touched == {"compare-w1", "drained-w1", "change-w1", "main-w1", "schedulable-w1"}


def test_a_node_with_nothing_to_change_keeps_its_pods(checkout: Path, tmp_path: Path) -> None:
    arguments = '-e gpu_node=w1 -e gpu_confirm=w1 -e {"todo":[]}'
    status, touched, output = call(checkout, tmp_path, "gpu_driver.yml", arguments)
    assert (status, touched) == (0, {"compare-w1", "main-w1", "schedulable-w1"}), output
    assert "its pods stay" in output


def test_the_cordon_of_the_policy_stays(checkout: Path, tmp_path: Path) -> None:
    """The role leaves this fact where a GPU is unhealthy and such nodes are to take no pods."""
    arguments = '-e gpu_node=w1 -e gpu_confirm=w1 -e {"__device_plugin_stays_cordoned":true}'
    status, touched, output = call(checkout, tmp_path, "gpu_driver.yml", arguments)
    assert (status, touched) == (0, {"compare-w1", "drained-w1", "change-w1", "main-w1"}), output


def test_what_can_be_known_before_is_refused_before_the_node_is_emptied(checkout: Path, tmp_path: Path) -> None:
    tasks = checkout / "roles" / "nvidia_driver" / "tasks" / "compare.yml"
    well = tasks.read_text(encoding="utf-8")
    tasks.write_text('- ansible.builtin.fail: {msg: "Not in the package index."}\n', encoding="utf-8")
    status, touched, output = call(checkout, tmp_path, "gpu_driver.yml", "-e gpu_node=w1 -e gpu_confirm=w1")
    tasks.write_text(well, encoding="utf-8")
    assert (status != 0, touched) == (True, set()), output


def test_what_fails_leaves_the_node_cordoned_and_named(checkout: Path, tmp_path: Path) -> None:
    tasks = checkout / "roles" / "nvidia_driver" / "tasks" / "change.yml"
    well = tasks.read_text(encoding="utf-8")
    tasks.write_text('- ansible.builtin.fail: {msg: "It did not come back."}\n', encoding="utf-8")
    status, touched, output = call(checkout, tmp_path, "gpu_driver.yml", "-e gpu_node=w1 -e gpu_confirm=w1")
    tasks.write_text(well, encoding="utf-8")
    assert (status != 0, touched) == (True, {"compare-w1", "drained-w1"}), output
    assert "w1 stays cordoned" in output
    assert "It did not come back." in output


def test_a_confirmed_node_is_recovered(checkout: Path, tmp_path: Path) -> None:
    status, touched, output = call(checkout, tmp_path, "gpu_recover.yml", "-e gpu_node=w1 -e gpu_confirm=w1")
    assert (status, touched) == (0, {"recover-w1"}), output
