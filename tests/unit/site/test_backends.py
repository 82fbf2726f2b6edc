"""Where the shared files lie: what is refused before anything is touched."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from trainyard.site.site_model import UNRESOLVED, Setting, Site
from trainyard.site.storage_rules import BACKEND_RULES, quantity

DEFAULTS = {
    "efs_mount_mode": "none",
    "efs_require_tls": True,
    "storage_claims": {"datasets": "20Gi", "training": "20Gi"},
    "storage_reclaim_policy": "Retain",
}
EFS = {"efs_name": "mine", "efs_subnet_ids": ["subnet-a"], "efs_clients": ["sg-a"]}
NFS = {"storage_backend": "nfs", "storage_nfs_server": "nfs.example.org", "storage_nfs_path": "/export"}


def refusals(values: dict[str, Any]) -> list[str]:
    site = Site(settings=[Setting(name, value, ("a",)) for name, value in values.items()], defaults=DEFAULTS)
    return [str(problem) for rule in BACKEND_RULES for problem in rule(site)]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("750Gi", 750 * 1024**3),
        ("1.5k", 1500),
        ("1E", 10**18),
        ("1Ei", 1024**6),
        ("12e3", 12000),
        ("500m", "0.5"),
        (7, 7),
        ("7 Gi", None),
        ("much", None),
        ("-1", None),
    ],
)
def test_quantities(text: object, number: int | str | None) -> None:
    assert quantity(text) == (None if number is None else Decimal(number))


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"storage_backend": "shared_path"},
        {**EFS, "storage_backend": "efs_mount", "efs_mount_mode": "efs_utils"},
        {**EFS, "storage_backend": "efs_mount", "efs_mount_mode": "nfs4", "efs_require_tls": False},
        # One that is there already.
        {"storage_backend": "efs_mount", "efs_mount_mode": "efs_utils", "efs_mount_server": "fs-0123"},
        {"storage_backend": "efs_csi", "storage_efs_handles": {"training": "fs-0123::fsap-0123"}},
        # What only the run can tell.
        {**EFS, "efs_subnet_ids": UNRESOLVED, "storage_backend": "efs_csi"},
        # A server on premises has no policy of AWS.
        {"storage_backend": "shared_path", "efs_mount_mode": "nfs4", "efs_mount_server": "nfs.example.org"},
        {**EFS, "storage_backend": "efs_mount", "efs_mount_mode": "nfs4", "efs_policy": {"Statement": []}},
        NFS,
        {**NFS, "storage_nfs_server": "fs-0123.efs.eu-central-1.amazonaws.com", "efs_require_tls": False},
        {**EFS, "storage_backend": "efs_csi", "storage_reclaim_policy": "Delete"},
        {"storage_claims": {"training": "750Gi"}, "storage_volumes": {"training": "900Gi"}},
        {"storage_volumes": {"training": "20Gi"}},
        {
            **EFS,
            "storage_backend": "efs_mount",
            "efs_mount_mode": "efs_utils",
            "storage_path": "/f",
            "efs_mount_path": "/f",
        },
    ],
)
def test_what_can_be(values: dict[str, Any]) -> None:
    assert refusals(values) == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (
            {"storage_claims": {"training": "1Ti"}, "storage_volumes": {"training": "900Gi"}},
            'storage_volumes.training (a) is "900Gi": its claim requests more, 1Ti.',
        ),
        ({"storage_volumes": {"other": "1Gi"}}, "there is no claim of this name. The claims are datasets, training."),
        ({"storage_claims": {"training": "much"}}, 'storage_claims.training (a) is "much": not a quantity'),
        (
            {"storage_backend": "efs_mount", "efs_mount_mode": "efs_utils"},
            'storage_backend (a) is "efs_mount": efs_name is not set. Set efs_name, efs_subnet_ids and efs_clients to '
            "create a file system, or set efs_mount_server to an existing one.",
        ),
        ({"storage_backend": "efs_csi"}, "efs_name is not set. Set efs_name, efs_subnet_ids and efs_clients to create"),
        (
            {"storage_backend": "efs_csi", "efs_name": "mine", "efs_clients": ["sg-a"]},
            'efs_name (a) is "mine": efs_subnet_ids is not set',
        ),
        ({**NFS, "storage_nfs_server": ""}, "storage_nfs_server is not set"),
        ({**NFS, "storage_nfs_path": ""}, "storage_nfs_path is not set"),
        ({**NFS, "storage_nfs_path": "export"}, 'storage_nfs_path (a) is "export": not absolute'),
        ({"storage_backend": "shared_path", "storage_reclaim_policy": "Delete"}, "cannot delete a volume"),
        (
            {**EFS, "storage_backend": "efs_mount", "efs_mount_mode": "absent"},
            'is "absent": storage_backend is efs_mount',
        ),
        ({**EFS, "storage_backend": "efs_mount"}, 'efs_mount_mode is "none": storage_backend is efs_mount'),
        ({"efs_mount_mode": "nfs4", "efs_mount_server": "nas", "efs_mount_path": "/"}, "not the path of a folder"),
        ({"efs_mount_mode": "nfs4", "efs_mount_server": "nas", "efs_mount_path": "srv"}, "not the path of a folder"),
        (
            {
                "storage_backend": "shared_path",
                "efs_mount_mode": "nfs4",
                "efs_mount_server": "",
                "efs_policy": {"a": 1},
            },
            "there is nothing to mount: efs_mount_server is not set, and storage_backend is not efs_mount",
        ),
        ({"efs_mount_mode": "efs_utils"}, "there is nothing to mount"),
        (
            {**EFS, "storage_backend": "efs_mount", "efs_mount_mode": "efs_utils", "efs_mount_server": "fs-0123"},
            'efs_mount_server (a) is "fs-0123": efs_name is set, too, and would create an',
        ),
        (
            {**EFS, "storage_backend": "efs_csi", "storage_efs_handles": {"training": "fs-0123::fsap-0123"}},
            "unused file system. Remove efs_name, or storage_efs_handles.",
        ),
        (
            {**EFS, "storage_backend": "efs_csi", "efs_mount_mode": "efs_utils"},
            "storage_backend is efs_csi, which mounts by itself for each pod",
        ),
        (
            {**EFS, "storage_backend": "efs_mount", "efs_mount_mode": "nfs4"},
            "NFS has no TLS, and efs_require_tls is true",
        ),
        (
            {
                **EFS,
                "storage_backend": "efs_mount",
                "efs_mount_mode": "nfs4",
                "efs_require_tls": False,
                "efs_policy": {"Statement": [{"Condition": {"Bool": {"aws:SecureTransport": "false"}}}]},
            },
            "NFS has no TLS",
        ),
        ({**NFS, "storage_nfs_server": "fs-0123.efs.eu-central-1.amazonaws.com"}, "NFS has no TLS"),
        (
            {
                **EFS,
                "storage_backend": "efs_mount",
                "efs_mount_mode": "efs_utils",
                "storage_path": "/f",
                "efs_mount_path": "/g",
            },
            'efs_mount_path (a) is "/g": storage_path is /f',
        ),
    ],
)
def test_what_cannot_be(values: dict[str, Any], expected: str) -> None:
    found = refusals(values)
    assert len(found) == 1 and expected in found[0], found
