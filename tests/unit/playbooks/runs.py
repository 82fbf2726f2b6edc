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
