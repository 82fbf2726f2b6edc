"""The role efs_mount: what each mode mounts on hosts, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.playbooks.storage_cases import OUTPUTS, prepared, run, start

# Several seconds for each start of Ansible.
pytestmark = pytest.mark.slow

NFS = "nfsvers=4.1,rsize=1048576,wsize=1048576,hard,timeo=600,retrans=2,noresvport,_netdev,nofail"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared(tmp_path_factory.mktemp("checkout"))


MODES: dict[str, tuple[dict[str, Any], str, tuple[str, str, str, int]]] = {
    "lax": ({"efs_mount_mode": "nfs4"}, "nfs-common", (f"{OUTPUTS['dns_name']}:/", "nfs4", NFS, 15360)),
    "nas": (
        {"efs_mount_mode": "nfs4", "efs_mount_server": "nas", "efs_mount_remote_path": "/export"},
        "nfs-common",
        ("nas:/export", "nfs4", NFS, 15360),
    ),
    "helper": ({"efs_mount_mode": "efs_utils"}, "amazon-efs-utils", ("fs-1:/", "efs", "_netdev,nofail,tls", 0)),
    "point": (
        {
            "efs_mount_mode": "efs_utils",
            "efs_mount_server": "fs-2",
            "efs_mount_remote_path": "/export",
            "efs_mount_iam": True,
            "efs_mount_access_point": "fsap-1",
            "efs_mount_helper_options": ["az=eu-central-1a"],
            "efs_mount_package": "stand-in",
        },
        "stand-in",
        ("fs-2:/", "efs", "_netdev,nofail,tls,iam,accesspoint=fsap-1,az=eu-central-1a", 0),
    ),
}


def test_what_each_mode_mounts_and_what_is_refused(checkout: Path, tmp_path: Path) -> None:
    cases = {case: {"storage_path": "/files", **values} for case, (values, _, _) in MODES.items()}
    cases |= {"usual": {}, "strict": {"efs_mount_mode": "nfs4"}, "early": {"efs_mount_mode": "efs_utils"}}
    cases["smb"] = {"efs_mount_mode": "smb"}
    plays = [
        # A play in which all hosts fail is the last one.
        *start("early:smb:usual", "efs_mount"),
        *start("nas:helper:point:strict", "efs_mount", outputs=OUTPUTS),
        *start("lax", "efs_mount", outputs={**OUTPUTS, "requires_tls": False}),
    ]
    given, output = run(checkout, tmp_path, plays, cases)
    assert given.keys() == MODES.keys(), output
    for said in (
        "and efs_mount_server is empty, and the role efs",
        "refuses clients without TLS. Set efs_mount_mode to efs_utils",
        "value of efs_mount_mode must be one of: none, absent, nfs4, efs_utils, got: smb",
    ):
        assert said in output
    for case, (_, package, mounted) in MODES.items():
        assert given[case]["apt_packages"]["packages"] == [package]
        unit = given[case]["mount_unit"]
        assert (unit["source"], unit["fstype"], ",".join(unit["options"]), int(unit["read_ahead_kb"])) == mounted
        assert unit["path"] == "/files"


def test_a_check_run_needs_neither_cluster_nor_file_system(checkout: Path, tmp_path: Path) -> None:
    empty = {**OUTPUTS, "file_system_id": "", "dns_name": "", "volume_handles": {"datasets": "", "training": ""}}
    plays = [*start("claims", "storage", "claims", empty), *start("mount", "efs_mount", outputs=empty)]
    cases = {"claims": {"storage_backend": "efs_csi"}, "mount": {"efs_mount_mode": "efs_utils"}}
    given, _ = run(checkout, tmp_path, plays, cases, "--check")
    made = given.get("claims", {})["kube_apply"]["definitions"]
    assert "made-by-this-run" in [
        each["spec"]["csi"]["volumeHandle"] for each in made if each["kind"] == "PersistentVolume"
    ]
    assert given["mount"]["mount_unit"]["source"] == "(made-by-this-run):/"
