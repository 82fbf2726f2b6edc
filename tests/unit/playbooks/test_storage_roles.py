"""The role storage: what each back end makes in the cluster, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.aws.volumes import cluster, volume
from tests.unit.playbooks.storage_cases import OUTPUTS, prepared, run, start
from trainyard.site.storage_rules import backends

# Several seconds for each start of Ansible.
pytestmark = pytest.mark.slow

SIZES = {"storage_claims": {"datasets": "1Gi", "training": "750Gi"}, "storage_volumes": {"training": "900Gi"}}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared(tmp_path_factory.mktemp("checkout"))


SOURCES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "folder": (
        {"storage_backend": "shared_path"},
        {"hostPath": {"path": "/srv/trainyard/shared/training", "type": "Directory"}},
        "",
    ),
    "folder2": (
        {"storage_backend": "shared_path", "efs_mount_server": "fs-3.efs.eu-central-1.amazonaws.com"},
        {"hostPath": {"path": "/srv/trainyard/shared/training", "type": "Directory"}},
        "fs-3",
    ),
    "mounted": (
        {"storage_backend": "efs_mount", "storage_path": "/f"},
        {"hostPath": {"path": "/f/training", "type": "Directory"}},
        "fs-1",
    ),
    "server": (
        {"storage_backend": "nfs", "storage_nfs_server": "10.1.0.5", "storage_nfs_path": "/export"},
        {"nfs": {"server": "10.1.0.5", "path": "/export/training"}},
        "",
    ),
    "driver": (
        {"storage_backend": "efs_csi"},
        {"csi": {"driver": "efs.csi.aws.com", "volumeHandle": "fs-1::fsap-2"}},
        "fs-1",
    ),
    "driver2": (
        {
            "storage_backend": "efs_csi",
            "storage_efs_handles": {"datasets": "fs-2::a", "training": "fs-2::b"},
            "storage_reclaim_policy": "Delete",
        },
        {"csi": {"driver": "efs.csi.aws.com", "volumeHandle": "fs-2::b"}},
        "fs-2",
    ),
}
"""Case -> its variables, the source of the volume `training`, and the file system of EFS that its label names."""


def test_the_same_claims_on_every_back_end(checkout: Path, tmp_path: Path) -> None:
    lacking = {"storage_backend": "efs_csi", "storage_claims": {"training": "1Gi", "mine": "1Gi"}}
    kept = [volume("trainings-training", "Released", "training"), volume("theirs", "Released", "training")]
    for name in ("bare", "kept"):
        (tmp_path / name).mkdir()
    with (
        cluster(tmp_path, [], tuple(row["driver"] for row in backends().values() if row["driver"])) as config,
        cluster(tmp_path / "bare", []) as bare,
        cluster(tmp_path / "kept", kept) as deleted,
    ):
        cases = {case: {**SIZES, **values} for case, (values, _, _) in SOURCES.items()}
        cases |= {"handleless": lacking, "driverless": {"storage_backend": "efs_csi", "storage_kubeconfig": str(bare)}}
        cases |= {"deleted": {"storage_backend": "shared_path", "storage_kubeconfig": str(deleted)}}
        values = {case: {"storage_kubeconfig": str(config), **each} for case, each in cases.items()}
        plays = start(":".join(cases), "storage", "claims", OUTPUTS)
        given, output = run(checkout, tmp_path, plays, values)
    assert given.keys() == SOURCES.keys(), output
    assert "The claims mine have no volume handle" in output
    assert "the cluster has no CSIDriver efs.csi.aws.com" in output
    assert "run this again: kubectl delete pv trainings-training." in output
    for case, (_, source, file_system) in SOURCES.items():
        made = given[case]["kube_apply"]["definitions"]
        objects = {(each["kind"], each["metadata"]["name"]): each for each in made}
        spec = objects["PersistentVolume", "trainings-training"]["spec"]
        claim = objects["PersistentVolumeClaim", "training"]["spec"]
        assert source.items() <= spec.items(), case
        assert (spec["capacity"], spec["accessModes"]) == ({"storage": "900Gi"}, ["ReadWriteMany"])
        assert objects["PersistentVolume", "trainings-datasets"]["spec"]["capacity"] == {"storage": "1Gi"}
        assert claim["resources"] == {"requests": {"storage": "750Gi"}}
        assert claim["volumeName"] == "trainings-training" and claim["accessModes"] == ["ReadWriteMany"]
        policy = cases[case].get("storage_reclaim_policy", "Retain")
        assert spec["persistentVolumeReclaimPolicy"] == policy
        metadata = objects["PersistentVolume", "trainings-training"]["metadata"]
        assert metadata["labels"].get("trainyard.dev/file-system", "") == file_system
        assert bool(metadata.get("annotations")) is (policy == "Delete"), "no driver deletes what it has not made"
        own = backends()[str(cases[case]["storage_backend"])]["class"]
        assert claim["storageClassName"] == spec["storageClassName"] == own
        classes = [each["provisioner"] for (kind, _), each in objects.items() if kind == "StorageClass"]
        assert classes == (["kubernetes.io/no-provisioner"] if own else [])
