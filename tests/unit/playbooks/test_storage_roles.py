"""The roles of shared storage: what each back end makes in the cluster and on hosts, and what is refused.

Each case is a host, so that all of them take one start of Ansible.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.aws.volumes import cluster
from tests.unit.playbooks.runs import ROOT, copy, play

# Several seconds for each start of Ansible.
pytestmark = pytest.mark.slow

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
    "kube_apply": ("kubeconfig", "definitions"),
    "apt_packages": ("packages",),
    "mount_unit": ("path", "source", "fstype", "options", "read_ahead_kb", "timeout", "probe_timeout"),
    "host_files": ("files", "stale", "commands"),
}
OUTPUTS = {
    "file_system_id": "fs-1",
    "dns_name": "fs-1.efs.eu-central-1.amazonaws.com",
    "requires_tls": True,
    "access_points": {"datasets": "fsap-1", "training": "fsap-2"},
}
SIZES = {"storage_claims": {"datasets": "1Gi", "training": "750Gi"}, "storage_volumes": {"training": "900Gi"}}
NFS = "nfsvers=4.1,rsize=1048576,wsize=1048576,hard,timeo=600,retrans=2,noresvport,_netdev,nofail"


def start(hosts: str, role: str, entry: str = "main", outputs: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """Plays that run a role for some cases, with these outputs of the role efs."""
    fact = {"name": "Say them", "ansible.builtin.set_fact": {"efs_outputs": outputs or {}}}
    environment = {"CASE": "{{ inventory_hostname }}"}
    include = {"ansible.builtin.include_role": {"name": role, "tasks_from": entry}}
    return [
        {"hosts": "localhost", "gather_facts": False, "tasks": [fact]},
        {"hosts": hosts, "gather_facts": False, "environment": environment, "tasks": [include]},
    ]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = copy(tmp_path_factory.mktemp("checkout"))
    (folder / "roles").symlink_to(ROOT / "roles")
    # It would render the files for the real module.
    (folder / "plugins" / "action" / "host_files.py").unlink()
    for name, options in FAKES.items():
        (folder / "library" / f"{name}.py").write_text(RECORD.format(name=name, options=options), encoding="utf-8")
    return folder


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


SOURCES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "folder": (
        {"storage_backend": "shared_path"},
        {"hostPath": {"path": "/srv/trainyard/shared/training", "type": "Directory"}},
    ),
    "mounted": (
        {"storage_backend": "efs_mount", "storage_path": "/f"},
        {"hostPath": {"path": "/f/training", "type": "Directory"}},
    ),
    "server": (
        {"storage_backend": "nfs", "storage_nfs_server": "10.1.0.5", "storage_nfs_path": "/export"},
        {"nfs": {"server": "10.1.0.5", "path": "/export/training"}},
    ),
    "driver": (
        {"storage_backend": "efs_csi"},
        {"csi": {"driver": "efs.csi.aws.com", "volumeHandle": "fs-1::fsap-2"}},
    ),
    "driver2": (
        {
            "storage_backend": "efs_csi",
            "storage_efs_handles": {"datasets": "fs-2::a", "training": "fs-2::b"},
            "storage_reclaim_policy": "Delete",
        },
        {"csi": {"driver": "efs.csi.aws.com", "volumeHandle": "fs-2::b"}},
    ),
}


def test_the_same_claims_on_every_back_end(checkout: Path, tmp_path: Path) -> None:
    lacking = {"storage_backend": "efs_csi", "storage_claims": {"training": "1Gi", "mine": "1Gi"}}
    (tmp_path / "bare").mkdir()
    with cluster(tmp_path, [], ("efs.csi.aws.com",)) as config, cluster(tmp_path / "bare", []) as bare:
        cases = {case: {**SIZES, **values} for case, (values, _) in SOURCES.items()}
        cases |= {"handleless": lacking, "driverless": {"storage_backend": "efs_csi", "storage_kubeconfig": str(bare)}}
        values = {case: {"storage_kubeconfig": str(config), **each} for case, each in cases.items()}
        plays = start(":".join(cases), "storage", "claims", OUTPUTS)
        given, output = run(checkout, tmp_path, plays, values)
    assert given.keys() == SOURCES.keys(), output
    assert "The claims mine have no volume handle" in output
    assert "the cluster has no CSIDriver efs.csi.aws.com" in output
    for case, (_, source) in SOURCES.items():
        made = given[case]["kube_apply"]["definitions"]
        objects = {(each["kind"], each["metadata"]["name"]): each for each in made}
        volume = objects["PersistentVolume", "trainings-training"]["spec"]
        claim = objects["PersistentVolumeClaim", "training"]["spec"]
        assert source.items() <= volume.items(), case
        assert (volume["capacity"], volume["accessModes"]) == ({"storage": "900Gi"}, ["ReadWriteMany"])
        assert objects["PersistentVolume", "trainings-datasets"]["spec"]["capacity"] == {"storage": "1Gi"}
        assert claim["resources"] == {"requests": {"storage": "750Gi"}}
        assert claim["volumeName"] == "trainings-training" and claim["accessModes"] == ["ReadWriteMany"]
        policy = cases[case].get("storage_reclaim_policy", "Retain")
        assert volume["persistentVolumeReclaimPolicy"] == policy
        assert claim["storageClassName"] == volume["storageClassName"] == ("trainyard-efs" if "csi" in source else "")
        classes = [each["provisioner"] for (kind, _), each in objects.items() if kind == "StorageClass"]
        assert classes == (["efs.csi.aws.com"] if "csi" in source else [])


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
            "efs_mount_package": "stand-in",
        },
        "stand-in",
        ("fs-2:/", "efs", "_netdev,nofail,tls,iam,accesspoint=fsap-1", 0),
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
        "efs_mount_server is empty: the role efs",
        "refuses clients without. Set efs_mount_mode to efs_utils",
        "value of efs_mount_mode must be one of: none, absent, nfs4, efs_utils, got: smb",
    ):
        assert said in output
    for case, (_, package, mounted) in MODES.items():
        assert given[case]["apt_packages"]["packages"] == [package]
        unit = given[case]["mount_unit"]
        assert (unit["source"], unit["fstype"], ",".join(unit["options"]), int(unit["read_ahead_kb"])) == mounted
        assert unit["path"] == "/files"


def test_a_check_run_needs_neither_cluster_nor_file_system(checkout: Path, tmp_path: Path) -> None:
    empty = {**OUTPUTS, "file_system_id": "", "dns_name": ""}
    plays = [*start("claims", "storage", "claims", empty), *start("mount", "efs_mount", outputs=empty)]
    cases = {"claims": {"storage_backend": "efs_csi"}, "mount": {"efs_mount_mode": "efs_utils"}}
    given, output = run(checkout, tmp_path, plays, cases, "--check")
    assert "kube_apply" in given.get("claims", {}), output
    assert given["mount"]["mount_unit"]["source"] == "(made-by-this-run):/"
