"""reset.yml and remove_node.yml, called as users call them: what was not named and confirmed is not destroyed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.playbooks.runs import ROOT, copy, play

# Two seconds and more for each start of Ansible.
pytestmark = pytest.mark.slow

FAKE = """
import os
from pathlib import Path
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.kubeadm.reset import require_confirmation

OPTIONS = ("name", "cri_socket", "etcd_data_dir", "timeout", "leave_etcd", "node_ip")
LISTS = ("confirmed", "paths", "interfaces")
module = AnsibleModule({**{name: {} for name in OPTIONS}, **{name: {"type": "list"} for name in LISTS}})
try:
    require_confirmation(module.params["name"], module.params["confirmed"])
except TrainyardError as error:
    module.fail_json(msg=str(error))
Path(os.environ["TOUCHED"], module.params["name"]).touch()
module.exit_json(changed=True)
"""
"""Stands for the module that destroys: asks for the confirmation as the real one does, then leaves a file."""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = copy(tmp_path_factory.mktemp("checkout"))
    (folder / "roles").symlink_to(ROOT / "roles")
    (folder / "library" / "node_drain.py").symlink_to(ROOT / "library" / "node_drain.py")
    (folder / "library" / "kubeadm_reset.py").write_text(FAKE, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param("-e reset_hosts=w1,w2 --limit w1,w2", "reset_confirm", id="limit, unconfirmed"),
        pytest.param("-e reset_hosts=w1,w2 -e reset_confirm=w2", "w1 is not reset", id="one of two confirmed"),
        pytest.param("-e reset_hosts=workers -e reset_confirm=workers --limit w1", "w1 is not reset", id="a group"),
        pytest.param(
            "-e reset_hosts=m1 -e reset_confirm=m1 --limit m1", "m1 is not reset", id="no host of the cluster"
        ),
        pytest.param("", "reset_hosts is ''", id="nothing named"),
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
    assert said in output, output
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
        pytest.param("-e remove_node_name=w1,w2 -e remove_node_confirm=w1,w2", "Set both to the name of one host"),
        pytest.param(
            "-e remove_node_name=cp1 -e remove_node_confirm=cp1 --start-at-task=Remove?the?node?from?the?cluster",
            "is not confirmed",
            id="begun behind the guard",
        ),
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
    assert said in output, output
    assert status != 0, output
