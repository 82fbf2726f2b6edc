"""The site of a lab with a schedule, as a separate checkout: small, with a vault that contains a secret."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from inputs import ROOT

CONTROLLER, WORKER = "controller1", "worker1"
FOLDER = "/var/lib/trainyard-reprovision"
INVENTORY = "inventories/proof"
HANGING = 9443
"""Port of the controller for a webhook."""
GROUPS = {
    "mirror": {"hosts": {"mirror1": {"ansible_host": "10.84.0.2"}}},
    "controllers": {"hosts": {CONTROLLER: {"ansible_host": "10.84.0.60"}}},
    "control_plane": {"hosts": {"cp1": {"ansible_host": "10.84.0.10"}}},
    "workers": {"hosts": {WORKER: {"ansible_host": "10.84.0.21"}}},
    "cluster": {"children": {"control_plane": None, "workers": None}},
    "builders": {"hosts": {}},
    "gpu_nodes": {"hosts": {}},
    "lab_hosts": {"children": {"mirror": None, "cluster": None, "controllers": None}},
}
SETTINGS: Mapping[str, Any] = {
    # The parts test hosts; a training would only take time.
    "workloads_trainings": [],
    "base_hosts_entries": "{{ {mirror_name: mirror_address, proof_canary: '192.0.2.9'} }}",
    "reprovision_inventory": INVENTORY,
    "reprovision_mode": "converge",
    # Never due while a part runs, because the part starts the runs.
    "reprovision_schedule": "*-12-31 23:59:00",
    "reprovision_delay": "0",
    # The same items drift repeatedly.
    "reprovision_max_repeats": 1000,
    # One worker of three hosts is more than the default.
    "reprovision_max_hosts": "100%",
    "reprovision_hooks": [
        # Nothing answers there, unless a part starts the hanging server.
        {"name": "hanging", "webhook": f"https://127.0.0.1:{HANGING}/"},
        # A program that prints the secret.
        {"name": "telltale", "command": ["/usr/local/bin/telltale"]},
    ],
}
TELLTALE = """#!/bin/sh
cat > {folder}/home/hook.json
grep 192.0.2.9 /etc/hosts /etc/telltale >&2
exit 1
"""


def check_out(folder: Path, root: Path = ROOT) -> None:
    """Copy all files of a checkout that git tracks, or would track."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True, timeout=60).stdout
    for name in filter(None, listed.split("\0")):
        if (root / name).is_symlink() or (root / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, folder / name, follow_symlinks=False)


def write_inventory(inventory: Path, canary: str, vault: Path) -> None:
    """Change the lab's inventory to that of a small site with a schedule, and encrypt the canary."""
    text = yaml.safe_dump({"all": {"children": dict(GROUPS)}})
    (inventory / "hosts.yml").write_text(text, encoding="utf-8")
    settings = {**SETTINGS, "reprovision_vault_password_file": str(vault)}
    program = str(Path(sys.executable).with_name("ansible-vault"))
    encrypt = [program, "encrypt_string", "--name=proof_canary", canary]
    # Not as an option: together with the environment's there would be two, and ansible-vault would ask which.
    env = {**os.environ, "ANSIBLE_VAULT_PASSWORD_FILE": str(vault)}
    done = subprocess.run(encrypt, check=True, capture_output=True, text=True, timeout=60, env=env)
    written = yaml.safe_dump(settings, width=1000) + done.stdout
    (inventory / "group_vars" / "all" / "zz_proof.yml").write_text(written, encoding="utf-8")
