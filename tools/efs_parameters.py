#!/usr/bin/env python3
"""Write docs/reference/efs-parameters.md: each parameter of the EFS API with its option, or the reason for none.

The parameters come from botocore's model. If a newer botocore adds one, add it to a table of this file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import botocore.session
from botocore.model import Shape

TARGET = Path(__file__).resolve().parent.parent / "docs" / "reference" / "efs-parameters.md"

FS, MT, AP, INFO = "efs_file_system", "efs_mount_target", "efs_access_point", "efs_info"
PAGES = "all pages are read; AWS chooses their size"

OPTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "CreateFileSystem": {
        "CreationToken": (FS, "creation_token"),
        "PerformanceMode": (FS, "performance_mode"),
        "Encrypted": (FS, "encrypted"),
        "KmsKeyId": (FS, "kms_key_id"),
        "ThroughputMode": (FS, "throughput_mode"),
        "ProvisionedThroughputInMibps": (FS, "provisioned_mibps"),
        "AvailabilityZoneName": (FS, "availability_zone"),
        "Backup": (FS, "backup"),
        "Tags.Key": (FS, "tags"),
        "Tags.Value": (FS, "tags"),
    },
    "UpdateFileSystem": {
        "ThroughputMode": (FS, "throughput_mode"),
        "ProvisionedThroughputInMibps": (FS, "provisioned_mibps"),
    },
    "DeleteFileSystem": {"FileSystemId": (FS, "file_system_id")},
    "PutLifecycleConfiguration": {
        "LifecyclePolicies.TransitionToIA": (FS, "lifecycle.transition_to_ia"),
        "LifecyclePolicies.TransitionToPrimaryStorageClass": (FS, "lifecycle.transition_to_primary"),
    },
    "PutBackupPolicy": {"BackupPolicy.Status": (FS, "backup")},
    "PutFileSystemPolicy": {"Policy": (FS, "policy")},
    "CreateMountTarget": {
        "FileSystemId": (MT, "file_system_id"),
        "SubnetId": (MT, "targets.subnet_id"),
        "IpAddress": (MT, "targets.ip_address"),
        "Ipv6Address": (MT, "targets.ipv6_address"),
        "IpAddressType": (MT, "targets.ip_address_type"),
        "SecurityGroups": (MT, "targets.security_groups"),
    },
    "ModifyMountTargetSecurityGroups": {"SecurityGroups": (MT, "targets.security_groups")},
    "DescribeMountTargets": {"FileSystemId": (MT, "file_system_id")},
    "CreateAccessPoint": {
        "FileSystemId": (AP, "file_system_id"),
        "Tags.Key": (AP, "access_points.tags"),
        "Tags.Value": (AP, "access_points.tags"),
        "PosixUser.Uid": (AP, "access_points.user.uid"),
        "PosixUser.Gid": (AP, "access_points.user.gid"),
        "PosixUser.SecondaryGids": (AP, "access_points.user.secondary_gids"),
        "RootDirectory.Path": (AP, "access_points.path"),
        "RootDirectory.CreationInfo.OwnerUid": (AP, "access_points.creation.owner_uid"),
        "RootDirectory.CreationInfo.OwnerGid": (AP, "access_points.creation.owner_gid"),
        "RootDirectory.CreationInfo.Permissions": (AP, "access_points.creation.permissions"),
    },
    "DescribeAccessPoints": {"FileSystemId": (AP, "file_system_id")},
    "DescribeFileSystems": {"CreationToken": (INFO, "creation_token"), "FileSystemId": (INFO, "file_system_id")},
    "TagResource": {"Tags.Key": (FS, "tags"), "Tags.Value": (FS, "tags")},
    "UntagResource": {"TagKeys": (FS, "purge_tags")},
}
"""Operation -> parameter -> module and option."""

LEFT_OUT: dict[str, dict[str, str]] = {
    "PutFileSystemPolicy": {"BypassPolicyLockoutSafetyCheck": "it would allow a caller to lock itself out"},
    "PutLifecycleConfiguration": {
        "LifecyclePolicies.TransitionToArchive": "the archive class is not implemented; an existing setting stays"
    },
    "CreateAccessPoint": {"ClientToken": "derived from file system and name, so that nothing is created twice"},
    "DescribeFileSystems": {"MaxItems": PAGES, "Marker": PAGES},
    "DescribeMountTargets": {
        "MaxItems": PAGES,
        "Marker": PAGES,
        "MountTargetId": "all targets of a file system are read at once",
        "AccessPointId": "all targets of a file system are read at once",
    },
    "DescribeAccessPoints": {
        "MaxResults": PAGES,
        "NextToken": PAGES,
        "AccessPointId": "all access points of a file system are read at once",
    },
}
"""Operation -> parameter -> reason why no option sets it."""

BY_ITSELF = {
    "UpdateFileSystem": ("FileSystemId",),
    "PutLifecycleConfiguration": ("FileSystemId",),
    "PutBackupPolicy": ("FileSystemId",),
    "PutFileSystemPolicy": ("FileSystemId",),
    "DeleteFileSystemPolicy": ("FileSystemId",),
    "DescribeLifecycleConfiguration": ("FileSystemId",),
    "DescribeBackupPolicy": ("FileSystemId",),
    "DescribeFileSystemPolicy": ("FileSystemId",),
    "DeleteMountTarget": ("MountTargetId",),
    "ModifyMountTargetSecurityGroups": ("MountTargetId",),
    "DeleteAccessPoint": ("AccessPointId",),
    "TagResource": ("ResourceId",),
    "UntagResource": ("ResourceId",),
}
"""Operation -> ids that a module determines itself."""

NOT_CALLED = {
    "CreateReplicationConfiguration": "replication is not implemented",
    "DeleteReplicationConfiguration": "replication is not implemented",
    "DescribeReplicationConfigurations": "replication is not implemented",
    "UpdateFileSystemProtection": "the protection of replicas is not implemented",
    "CreateTags": "deprecated by AWS for TagResource",
    "DeleteTags": "deprecated by AWS for UntagResource",
    "DescribeTags": "deprecated by AWS for ListTagsForResource",
    "ListTagsForResource": "descriptions contain the tags",
    "DescribeMountTargetSecurityGroups": "needs one call per target; EC2 returns all in one call",
    "DescribeAccountPreferences": "the length of ids is the account's, and long for all new ones",
    "PutAccountPreferences": "the length of ids is the account's, and long for all new ones",
}
"""Operation -> reason why no module calls it."""


def parameters(shape: Shape | None, before: str = "") -> Iterator[str]:
    """Yield the parameters of an operation's input, with those inside structures and lists of structures.

    :param before: path of the structure, such as `Tags.`.
    """
    for name, member in (shape.members if shape else {}).items():
        inner = member.member if member.type_name == "list" else member
        if inner.type_name == "structure":
            yield from parameters(inner, f"{before}{name}.")
        else:
            yield f"{before}{name}"


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield each operation, parameter, and its option or the reason for none.

    :raises KeyError: the model has an operation or a parameter that is in no table of this file.
    """
    model = botocore.session.get_session().get_service_model("efs")
    for operation in model.operation_names:
        if operation in NOT_CALLED:
            yield operation, "(all)", f"not called: {NOT_CALLED[operation]}"
            continue
        for name in parameters(model.operation_model(operation).input_shape):
            if name in BY_ITSELF.get(operation, ()):
                yield operation, name, "determined by the module"
            elif name in LEFT_OUT.get(operation, {}):
                yield operation, name, f"left out: {LEFT_OUT[operation][name]}"
            else:
                module, option = OPTIONS[operation][name]
                yield operation, name, f"`{module}`: `{option}`"


def render() -> str:
    """Return the page."""
    lines = [
        "# EFS's API and the modules",
        "",
        "Generated from botocore's model of the API by `python3 tools/efs_parameters.py`. A test keeps this page",
        "current. It fails if a newer model has an operation or parameter that the program does not list.",
        "",
        "| operation | parameter | option |",
        "| --- | --- | --- |",
        *(f"| {' | '.join(row)} |" for row in rows()),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(render(), encoding="utf-8")
