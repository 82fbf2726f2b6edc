"""Calls of playbooks/efs.yml and efs_down.yml as users make them, and what they leave in the account."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.unit.aws.conftest import Site

ROOT = Path(__file__).resolve().parents[3]

NOTHING = {"file systems": 0, "mount targets": 0, "access points": 0, "security groups": 0, "interfaces": 0}
ALL = {"file systems": 1, "mount targets": 3, "access points": 2, "security groups": 1, "interfaces": 3}


class User:
    """Calls playbooks with an inventory of one site.

    :param folder: keeps the inventory.
    """

    def __init__(self, site: Site, folder: Path) -> None:
        self.site, self.folder = site, folder
        self.values: dict[str, Any] = {
            "efs_name": "mine",
            "efs_subnet_ids": site.subnets,
            "efs_clients": [site.nodes],
            "efs_lifecycle": {"transition_to_ia": "AFTER_30_DAYS"},
            "efs_timeout": 60,
            "efs_interval": 0.05,
            "storage_backend": "efs_csi",
            "control_plane_kubeconfig": "/nonexistent",
        }

    def play(self, playbook: str, *arguments: str) -> tuple[bool, int, str]:
        """Whether a playbook succeeded, how many of its tasks changed something, and its output in one line."""
        hosts = {"workers": {"hosts": {"w1": {}}}, "cluster": {"children": {"workers": {}}}}
        inventory = {"all": {"vars": self.values, "children": hosts}}
        (self.folder / "hosts.yml").write_text(json.dumps(inventory), encoding="utf-8")
        done = subprocess.run(
            [
                Path(sys.executable).with_name("ansible-playbook"),
                f"playbooks/{playbook}",
                "-i",
                self.folder / "hosts.yml",
                *arguments,
            ],
            cwd=ROOT,
            env={**os.environ, "ANSIBLE_NOCOLOR": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        changed = re.findall(r"^localhost +: ok=\d+ +changed=(\d+)", done.stdout, re.MULTILINE)
        return done.returncode == 0, sum(map(int, changed)), " ".join((done.stdout + done.stderr).split())

    def left(self) -> dict[str, int]:
        """What there is in the account beside its network."""
        efs, groups = self.site.efs, self.site.ec2.describe_security_groups()["SecurityGroups"]
        systems = self.site.file_systems()
        targets = [efs.describe_mount_targets(FileSystemId=each["FileSystemId"])["MountTargets"] for each in systems]
        return {
            "file systems": len(systems),
            "mount targets": sum(map(len, targets)),
            "access points": len(efs.describe_access_points()["AccessPoints"]),
            "security groups": len([each for each in groups if each["GroupName"] == "mine-efs"]),
            "interfaces": len(self.site.ec2.describe_network_interfaces()["NetworkInterfaces"]),
        }
