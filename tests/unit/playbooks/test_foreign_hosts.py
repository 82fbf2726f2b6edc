"""A node of another cluster is refused before any change, also while the controller has no kubeconfig."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.playbooks.runs import ROOT

# Several seconds for each run.
pytestmark = pytest.mark.slow

PLAYBOOK = """
- hosts: cluster
  connection: local
  gather_facts: false
  tasks:
    - import_role: {name: base, tasks_from: preflight}
    - debug:
        msg: "{{ inventory_hostname }} is taken, {{ ansible_facts['cluster_is_known'] | ternary('known', '') }}"
"""
INVENTORY = """
all:
  vars:
    supply: vendors
    control_plane_kubeconfig: KUBECONFIG
    site_dir: /nonexistent
    ansible_python_interpreter: PYTHON
  children:
    control_plane: {hosts: {cp1: }}
    workers: {hosts: {w1: , w2: }}
    cluster: {children: {control_plane: , workers: }}
"""
PREFLIGHT = """
from ansible.plugins.action import ActionBase
class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        import json, os
        seen = json.loads(os.environ["SEEN"]).get(task_vars["inventory_hostname"], {})
        given = self._task.args["cluster"]
        print("GIVEN", json.dumps(given))
        return {"host": {"system": "debian-13"}, "cluster": seen, "ansible_facts": {"cluster_is_known": True}}
"""
KUBECONFIG = """
clusters:
- cluster: {server: "https://10.0.0.1:6443", certificate-authority-data: b3VycyEK}
  name: ours
"""


def seen(*cas: str, made: bool = False) -> dict[str, object]:
    """What the module reports of a node."""
    return {
        "source": "/etc/kubernetes/kubelet.conf",
        "name": "x",
        "server": "y",
        "cas": cas,
        "made": made,
        "known": True,
    }


def play(folder: Path, states: dict[str, object], kubeconfig: str = "") -> tuple[int, str]:
    """The preflight alone, with hosts whose module answers so; `kubeconfig` is the controller's."""
    (folder / "playbook.yml").write_text(PLAYBOOK, encoding="utf-8")
    (folder / "actions").mkdir()
    (folder / "actions" / "host_preflight.py").write_text(PREFLIGHT, encoding="utf-8")
    if kubeconfig:
        (folder / "kubeconfig").write_text(kubeconfig, encoding="utf-8")
    inventory = INVENTORY.replace("KUBECONFIG", str(folder / "kubeconfig")).replace("PYTHON", sys.executable)
    (folder / "hosts.yml").write_text(inventory, encoding="utf-8")
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    done = subprocess.run(
        [program, "-i", str(folder / "hosts.yml"), str(folder / "playbook.yml")],
        cwd=ROOT,
        env={
            **os.environ,
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_ACTION_PLUGINS": f"{folder}/actions:{ROOT}/plugins/action",
            "SEEN": json.dumps(states),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, " ".join((done.stdout + done.stderr).split())


@pytest.mark.parametrize(
    ("states", "taken"),
    [
        # A new site: no host is a node, then one that is another site's.
        ({}, {"cp1", "w1", "w2"}),
        ({"w1": seen("b")}, {"cp1", "w2"}),
        # A site whose controller has lost the kubeconfig, with a worker of another site of this project
        ({"cp1": seen("a", made=True), "w1": seen("a"), "w2": seen("b")}, {"cp1", "w1"}),
    ],
)
def test_without_a_kubeconfig_the_control_plane_decides(tmp_path: Path, states: dict, taken: set[str]) -> None:
    status, said = play(tmp_path, states)
    assert {name for name in ("cp1", "w1", "w2") if f"{name} is taken, known" in said} == taken, said
    assert (status != 0) == (len(taken) < 3)
    assert status == 0 or "and the control plane hosts of this inventory are not in that cluster" in said


def test_the_module_gets_the_cluster_of_the_kubeconfig(tmp_path: Path) -> None:
    status, said = play(tmp_path, {"w1": seen("b")}, KUBECONFIG)
    given = {"kubeconfig": f"{tmp_path}/kubeconfig", "name": "ours", "server": "https://10.0.0.1:6443", "ca": "ours!\n"}
    assert status == 0 and json.dumps(given) in said, said
