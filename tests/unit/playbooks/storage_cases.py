"""The roles of shared storage with modules that only note what they were given; a case is a host, all of one start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from tests.unit.playbooks.runs import ROOT, copy, play

RECORD = """
import json, os, uuid
from pathlib import Path
from ansible.module_utils.basic import AnsibleModule
spec = {{name: {{"type": "raw"}} for name in {options}}}
module = AnsibleModule(spec, supports_check_mode=True)
given = {{**module.params, "module": {name!r}, "case": os.environ["CASE"], "preflight": module.check_mode}}
Path(os.environ["TOUCHED"], uuid.uuid4().hex).write_text(json.dumps(given))
module.exit_json(changed=False, steps=[])
"""
"""Stands for a module that needs a cluster, an archive or systemd: leaves what it was given in a file."""

FAKES = {
    "kube_apply": ("kubeconfig", "definitions", "record"),
    "apt_packages": ("packages",),
    "mount_unit": ("path", "source", "fstype", "options", "read_ahead_kb", "timeout", "probe_timeout"),
    "host_files": ("files", "stale", "commands"),
}
OUTPUTS = {
    "file_system_id": "fs-1",
    "dns_name": "fs-1.efs.eu-central-1.amazonaws.com",
    "requires_tls": True,
    "volume_handles": {"datasets": "fs-1::fsap-1", "training": "fs-1::fsap-2"},
}


def start(hosts: str, role: str, entry: str = "main", outputs: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """Plays that run a role for some cases, with these outputs of the role efs."""
    fact = {"name": "Say them", "ansible.builtin.set_fact": {"efs_outputs": outputs or {}}}
    environment = {"CASE": "{{ inventory_hostname }}"}
    include = {"ansible.builtin.include_role": {"name": role, "tasks_from": entry}}
    return [
        {"hosts": "localhost", "gather_facts": False, "tasks": [fact]},
        {"hosts": hosts, "gather_facts": False, "environment": environment, "tasks": [include]},
    ]


def prepared(folder: Path) -> Path:
    """A copy of the checkout with these modules."""
    checkout = copy(folder)
    (checkout / "roles").symlink_to(ROOT / "roles")
    # It would render the files for the real module.
    (checkout / "plugins" / "action" / "host_files.py").unlink()
    for name, options in FAKES.items():
        (checkout / "library" / f"{name}.py").write_text(RECORD.format(name=name, options=options), encoding="utf-8")
    return checkout


def run(
    checkout: Path, folder: Path, plays: list[dict[str, Any]], cases: dict[str, dict[str, Any]], *arguments: str
) -> tuple[dict[str, Any], str]:
    """By case and module what the fakes were given, but for what looks before anything is installed; and the output."""
    (checkout / "playbooks" / "cases.yml").write_text(yaml.safe_dump(plays, sort_keys=False), encoding="utf-8")
    (folder / "cases.yml").write_text(yaml.safe_dump({"all": {"hosts": cases}}), encoding="utf-8")
    arguments = ("-i", str(folder / "cases.yml"), *arguments)
    _, touched, output = play(checkout, folder, "playbooks/cases.yml", *arguments)
    given: dict[str, Any] = {}
    for name in touched:
        each = json.loads((folder / "touched" / name).read_text(encoding="utf-8"))
        if "--check" in arguments or not each["preflight"]:
            given.setdefault(each["case"], {})[each["module"]] = each
    return given, output
