"""Calls of the playbooks as users make them, on hosts that are this machine, in a copy of the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
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
    *("nvidia_driver", "nvidia_runtime", "device_plugin"),
)
ON_CONTROLLER = ("bundle", "lab", "efs", "network", "metrics", "dashboard", "workloads", "verify")
TOUCH = """
- name: Leave a file
  ansible.builtin.file:
    path: "{{ lookup('ansible.builtin.env', 'TOUCHED') }}/{{ inventory_hostname }}%s"
    state: touch
    mode: "0600"
"""
VERDICT = "-missing={{ verify_missing_hosts | join(',') }}-left_out={{ verify_left_out | length }}"
VALID = """
from ansible.module_utils.basic import AnsibleModule
AnsibleModule({}).exit_json()
"""


def copy(folder: Path) -> Path:
    """The checkout without `roles` and `library`; Ansible would find the real ones beside the playbooks first."""
    for name in ("site.yml", "verify.yml", "reset.yml", "remove_node.yml", "ansible.cfg"):
        shutil.copy(ROOT / name, folder)
    for name in ("playbooks", "plugins"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("module_utils", "trainyard"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "library").mkdir()
    return folder


def stubs(folder: Path) -> Path:
    """Every role of `site.yml` as one that only leaves a file named after its host; no inventory is refused."""
    (folder / "plugins" / "action" / "validate_site.py").unlink()
    (folder / "library" / "validate_site.py").write_text(VALID, encoding="utf-8")
    for role in ON_HOSTS + ON_CONTROLLER:
        tasks = folder / "roles" / role / "tasks"
        tasks.mkdir(parents=True)
        (tasks / "main.yml").write_text(TOUCH % (VERDICT if role == "verify" else ""), encoding="utf-8")
    for role, entry_point in (
        ("base", "preflight"),
        ("control_plane", "findings"),
        ("kubernetes", "preflight"),
        ("kubernetes", "endpoint"),
        ("network", "ready"),
        ("dashboard", "deliver"),
        ("dashboard", "preflight"),
        ("storage", "claims"),
        ("workloads", "code"),
        ("workloads", "deliver"),
    ):
        (folder / "roles" / role / "tasks" / f"{entry_point}.yml").write_text(TOUCH % "", encoding="utf-8")
    (folder / "roles" / "verify" / "tasks" / "probe.yml").write_text(TOUCH % "-probed", encoding="utf-8")
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
