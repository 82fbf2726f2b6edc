"""Calls of the playbooks as users make them, on hosts that are this machine, in a copy of the checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

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

ON_HOSTS = (
    *("base", "docker", "containerd", "kubernetes", "efs_mount", "storage", "control_plane", "worker", "mirror"),
    *("nvidia_driver", "nvidia_runtime", "device_plugin", "firewall"),
)
ON_CONTROLLER = ("bundle", "lab", "efs", "network", "metrics", "dashboard", "workloads", "verify")
TOUCH = """
- name: Leave a file
  leave_file:
    path: "{{ lookup('ansible.builtin.env', 'TOUCHED') }}/{{ inventory_hostname }}%s"
"""
WAITS = """
- name: Say whose nodes are not waited for
  ansible.builtin.debug:
    msg: "waits without: {{ network_missing_hosts | join(',') }}."
"""
VERDICT = "-missing={{ verify_missing_hosts | join(',') }}-left_out={{ verify_left_out | length }}"
STUBS = {
    "leave_file": """
from pathlib import Path
from ansible.plugins.action import ActionBase
class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        if not self._task.check_mode:
            Path(self._task.args["path"]).touch()
        return {"changed": True}
""",
    "setup": """
import json
from pathlib import Path
from ansible.plugins.action import ActionBase
class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        self._low_level_execute_command("true")
        return json.loads(Path(__file__).with_name("facts.json").read_text())
""",
    "port_probe": """
from ansible.plugins.action import ActionBase
class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        return {}
""",
    "validate_site": """
from ansible.plugins.action import ActionBase
class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        return {}
""",
}
"""Stand for modules in runs of the whole site, which have nearly a hundred in each: these start no Python process.

`setup` reaches its host as the real one does; what it answers is this machine's, which every host is.
"""


IN_PROCESS = """
from ansible.plugins.action import ActionBase
class Ended(Exception):
    pass
class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        given, check = self._task.args, self._task.check_mode
        class AnsibleModule:
            check_mode = check
            def __init__(self, spec, **options):
                assert set(given) <= set(spec), sorted(set(given) - set(spec))
                self.params = {name: given.get(name, each.get("default")) for name, each in spec.items()}
            def exit_json(self, **result):
                self.result = result
                raise Ended(result)
            def fail_json(self, **result):
                self.exit_json(failed=True, **result)
        try:
            exec(TEXT, {"AnsibleModule": AnsibleModule})
        except Ended as ended:
            return ended.args[0]
TEXT = %r
"""


def put_fakes(checkout: Path, fakes: Mapping[str, str]) -> None:
    """Put modules in the place of the real ones.

    Where the real one has no action plugin, which has to stay, they are run by one: no Python process for each.
    """
    for name, text in fakes.items():
        action = checkout / "plugins" / "action" / f"{name}.py"
        if action.exists():
            (checkout / "library" / f"{name}.py").write_text(text, encoding="utf-8")
        else:
            alone = text.replace("from ansible.module_utils.basic import AnsibleModule\n", "")
            action.write_text(IN_PROCESS % alone, encoding="utf-8")


def copy(folder: Path) -> Path:
    """The checkout without `roles` and `library`; Ansible would find the real ones beside the playbooks first."""
    for name in ("site.yml", "verify.yml", "reset.yml", "remove_node.yml", "ansible.cfg"):
        shutil.copy(ROOT / name, folder)
    for name in ("playbooks", "plugins"):
        shutil.copytree(ROOT / name, folder / name)
    (folder / "src").symlink_to(ROOT / "src")
    (folder / "library").mkdir()
    return folder


@cache
def facts() -> str:
    """What `setup` answers for this machine."""
    arguments = {"gather_subset": ["!all", "!min", "distribution", "service_mgr", "network"]}
    command = [sys.executable, "-m", "ansible.modules.setup", json.dumps({"ANSIBLE_MODULE_ARGS": arguments})]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def stubs(folder: Path) -> Path:
    """Every role of `site.yml` as one that only leaves a file named after its host; no inventory is refused."""
    for name, text in STUBS.items():
        (folder / "plugins" / "action" / f"{name}.py").write_text(text, encoding="utf-8")
    (folder / "plugins" / "action" / "facts.json").write_text(facts(), encoding="utf-8")
    for playbook in ("site.yml", "tasks/check_host.yml"):
        path = folder / "playbooks" / playbook
        plays = path.read_text(encoding="utf-8")
        assert "ansible.builtin.setup:" in plays
        path.write_text(plays.replace("ansible.builtin.setup:", "setup:"), encoding="utf-8")
    for role in ON_HOSTS + ON_CONTROLLER:
        tasks = folder / "roles" / role / "tasks"
        tasks.mkdir(parents=True)
        (tasks / "main.yml").write_text(TOUCH % (VERDICT if role == "verify" else ""), encoding="utf-8")
    for role, entry_point in (
        ("base", "preflight"),
        ("control_plane", "findings"),
        ("kubernetes", "preflight"),
        ("kubernetes", "endpoint"),
        ("mirror", "require"),
        ("network", "ready"),
        ("dashboard", "deliver"),
        ("dashboard", "preflight"),
        ("storage", "claims"),
        ("workloads", "code"),
        ("workloads", "deliver"),
    ):
        text = TOUCH % "" + (WAITS if (role, entry_point) == ("network", "ready") else "")
        (folder / "roles" / role / "tasks" / f"{entry_point}.yml").write_text(text, encoding="utf-8")
    (folder / "roles" / "verify" / "tasks" / "probe.yml").write_text(TOUCH % "-probed", encoding="utf-8")
    # playbooks/_compare_hosts.yml reads them.
    shutil.copytree(ROOT / "roles" / "network" / "defaults", folder / "roles" / "network" / "defaults")
    return folder


def play(checkout: Path, folder: Path, playbook: str, *arguments: str) -> tuple[int, set[str], str]:
    """Run a playbook; its status, the names of the files that its fakes left in $TOUCHED, and its output."""
    inventory, touched = folder / "hosts.yml", folder / "touched"
    inventory.write_text(INVENTORY, encoding="utf-8")
    touched.mkdir()
    done = subprocess.run(
        [str(Path(sys.executable).with_name("ansible-playbook")), playbook, "-i", str(inventory), *arguments],
        cwd=checkout,
        env={**os.environ, "ANSIBLE_NOCOLOR": "1", "TOUCHED": str(touched)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, {path.name for path in touched.iterdir()}, " ".join((done.stdout + done.stderr).split())
