"""The EFS resources of a region as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from . import access_point, file_system_plan, mount_target, security_group
from .client import Aws
from .file_system import FileSystem
from .security_group import OWNER

PARTS = ["mount_targets", "access_points", "lifecycle", "backup", "policy", "security_groups"]
"""Optional parts, each read with additional calls."""

_EMPTY: dict[str, Any] = {"lifecycle": {}, "backup": False, "policy": {}}
_OWN = (
    "performance_mode",
    "throughput_mode",
    "provisioned_mibps",
    "encrypted",
    "kms_key_id",
    "availability_zone",
    "tags",
)


def file_systems(aws: Aws, token: str, file_system_id: str, parts: Sequence[str]) -> list[dict[str, Any]]:
    """Return all file systems, or those of a token or id, with the requested parts."""
    return [_file_system(aws, each, parts) for each in _descriptions(aws, token, file_system_id)]


def _descriptions(aws: Aws, token: str, file_system_id: str) -> list[dict[str, Any]]:
    if not (token or file_system_id):
        return aws.items("efs:DescribeFileSystems", "FileSystems", "all file systems")
    found = file_system_plan.find(aws, token=token, file_system_id=file_system_id)
    wrong = found is None or (file_system_id and found["FileSystemId"] != file_system_id)
    return [] if wrong or found is None else [found]


def _file_system(aws: Aws, description: dict[str, Any], parts: Sequence[str]) -> dict[str, Any]:
    its_id = description["FileSystemId"]
    asked = FileSystem(**{name: empty for name, empty in _EMPTY.items() if name in parts})
    state = asdict(file_system_plan.read(aws, description, asked))
    found: dict[str, Any] = {
        "id": its_id,
        "arn": description.get("FileSystemArn", ""),
        "creation_token": description["CreationToken"],
        "name": description.get("Name", ""),
        "state": description["LifeCycleState"],
        "bytes": description["SizeInBytes"]["Value"],
        **{name: state[name] for name in _OWN},
        **{name: state[name] for name in _EMPTY if name in parts},
    }
    if "mount_targets" in parts:
        targets = mount_target.with_groups(aws, mount_target.find(aws, its_id))
        found["mount_targets"] = [
            {**asdict(each), "security_groups": sorted(each.security_groups or ())} for each in targets
        ]
    if "access_points" in parts:
        found["access_points"] = [asdict(each) for each in access_point.find(aws, its_id)]
    return found


def security_groups(aws: Aws, owner: str) -> list[dict[str, Any]]:
    """Return the security groups created for an owner, or for any owner."""
    return [
        {
            "id": each.id,
            "name": each.name,
            "vpc_id": each.vpc,
            "owner": each.tags.get(OWNER, ""),
            "allows": sorted(map(str, each.rules)),
        }
        for each in security_group.find(aws, owner=owner or "*")
    ]
