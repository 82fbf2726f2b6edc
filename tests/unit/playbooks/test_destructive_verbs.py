"""reset.yml and remove_node.yml, called as users call them: what was not named and confirmed is not destroyed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

# Two seconds and more for each start of Ansible.
pytestmark = pytest.mark.slow

INVENTORY = """
all:
  vars:
    ansible_connection: local
    ansible_become: false
    ansible_python_interpreter: "{{ ansible_playbook_python }}"
    control_plane_kubeconfig: /nonexistent
  children:
    mirror: {hosts: {m1: }}
    control_plane: {hosts: {cp1: }}
    workers: {hosts: {w1: , w2: }}
    cluster: {children: {control_plane: , workers: }}
"""


FAKE = """
import os
from pathlib import Path
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.kubeadm.reset import require_confirmation

OPTIONS = ("name", "cri_socket", "etcd_data_dir", "timeout")
LISTS = ("confirmed", "paths", "interfaces")
module = AnsibleModule({**{name: {} for name in OPTIONS}, **{name: {"type": "list"} for name in LISTS}})
try:
    require_confirmation(module.params["name"], module.params["confirmed"])
except TrainyardError as error:
    module.fail_json(msg=str(error))
Path(os.environ["DESTROYED"], module.params["name"]).touch()
module.exit_json(changed=True)
"""
"""Stands for the module that destroys: asks for the confirmation as the real one does, then leaves a file."""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkout's playbooks and roles with the fake module; Ansible looks beside a playbook before anywhere else."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("reset.yml", "remove_node.yml", "ansible.cfg"):
        shutil.copy(ROOT / name, folder)
    for name in ("playbooks", "library"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("module_utils", "plugins", "roles"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "library" / "kubeadm_reset.py").write_text(FAKE, encoding="utf-8")
    return folder


def play(checkout: Path, folder: Path, playbook: str, *arguments: str) -> tuple[int, set[str], str]:
    """Run a playbook on hosts that are this machine; its status, the hosts that were destroyed, and its output."""
    inventory, destroyed = folder / "hosts.yml", folder / "destroyed"
    inventory.write_text(INVENTORY, encoding="utf-8")
    destroyed.mkdir()
    done = subprocess.run(
        [str(Path(sys.executable).with_name("ansible-playbook")), playbook, "-i", str(inventory), *arguments],
        cwd=checkout,
        env={**os.environ, "ANSIBLE_NOCOLOR": "1", "DESTROYED": str(destroyed)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, {path.name for path in destroyed.iterdir()}, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param("-e reset_hosts=w1,w2 --limit w1,w2", "reset_confirm", id="limit, unconfirmed"),
        pytest.param("-e reset_hosts=w1,w2 -e reset_confirm=w2", "w1 is not reset", id="one of two confirmed"),
        pytest.param("-e reset_hosts=workers -e reset_confirm=workers --limit w1", "w1 is not reset", id="a group"),
        pytest.param(
            "-e reset_hosts=m1 -e reset_confirm=m1 --limit m1", "m1 is not reset", id="no host of the cluster"
        ),
        pytest.param("", "Give reset_hosts", id="nothing named"),
        pytest.param("--limit w1", "", id="limit, nothing named"),
        pytest.param(
            "-e reset_hosts=w1 --limit w1 --start-at-task=*Undo?init*",
            "is not confirmed",
            id="begun behind the confirmation",
        ),
    ],
)
def test_a_reset_that_is_not_confirmed_destroys_nothing(
    checkout: Path, tmp_path: Path, arguments: str, said: str
) -> None:
    status, destroyed, output = play(checkout, tmp_path, "reset.yml", *arguments.split())
    assert destroyed == set(), output
    assert said in " ".join(output.split()), output
    assert status != 0 or not said, output


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("-e reset_hosts=w1,w2 -e reset_confirm=w1,w2", {"w1", "w2"}),
        ("-e reset_hosts=w1,w2 -e reset_confirm=w1,w2 --limit w2", {"w2"}),
    ],
)
def test_a_confirmed_reset_takes_the_named_hosts(
    checkout: Path, tmp_path: Path, arguments: str, expected: set[str]
) -> None:
    status, destroyed, output = play(checkout, tmp_path, "reset.yml", *arguments.split())
    assert (status, destroyed) == (0, expected), output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param("-e remove_node_name=w1 --limit w1", "w1 is not removed", id="limit, unconfirmed"),
        pytest.param("-e remove_node_name=workers -e remove_node_confirm=workers --limit w1", "w1 is not removed"),
        pytest.param("-e remove_node_name=cp1 -e remove_node_confirm=cp1 --limit cp1", "cp1 is not removed"),
        pytest.param("-e remove_node_name=w1 -e remove_node_confirm=w1 --limit w1", "/nonexistent", id="not drained"),
        pytest.param(
            "-e remove_node_name=w1 -e remove_node_confirm=w1 --start-at-task=*Undo?init*",
            "is not confirmed",
            id="begun behind the drain",
        ),
    ],
)
def test_a_node_that_is_not_confirmed_or_not_drained_is_not_reset(
    checkout: Path, tmp_path: Path, arguments: str, said: str
) -> None:
    status, destroyed, output = play(checkout, tmp_path, "remove_node.yml", *arguments.split())
    assert destroyed == set(), output
    assert said in " ".join(output.split()), output
    assert status != 0, output
