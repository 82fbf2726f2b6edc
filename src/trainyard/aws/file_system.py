"""An EFS file system and its resource policy: desired state, observed state, and the calls to reconcile them.

Parts: the policy; the file system. The policy refuses clients without TLS. A normal form makes policies comparable.
Desired and observed state of the file system have the same shape.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from ..core.errors import TrainyardError
from .changes import Change, differing, tag_changes, to_list, wanted_tags

REQUIRE_TLS: dict[str, Any] = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Sid": "ClientsOfTheNetwork",
            "Effect": "Allow",
            "Principal": {"AWS": "*"},
            "Action": [
                "elasticfilesystem:ClientMount",
                "elasticfilesystem:ClientRootAccess",
                "elasticfilesystem:ClientWrite",
            ],
            "Condition": {"Bool": {"elasticfilesystem:AccessedViaMountTarget": "true"}},
        },
        {
            "Sid": "OnlyWithTls",
            "Effect": "Deny",
            "Principal": {"AWS": "*"},
            "Action": "*",
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        },
    ],
}
"""The policy that the AWS console writes for "Enforce in-transit encryption for all clients". Any policy replaces EFS's
default one, so it must allow the same: all clients that reach a mount target."""

_OWN = re.compile(r"arn:aws[a-z-]*:elasticfilesystem:[^:]*:[0-9]*:file-system/fs-[0-9a-f]+")
"""The only possible resource of a policy is its own file system, so naming it makes no difference."""

_LISTS = ("Action", "NotAction", "Resource", "NotResource")
_WHO = ("Principal", "NotPrincipal")


def normal(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Return the normal form of a policy: single values become sorted lists, and statement IDs are removed."""
    statements = policy.get("Statement", [])
    statements = [statements] if isinstance(statements, Mapping) else statements
    return {
        "Version": policy.get("Version", "2008-10-17"),
        "Statement": sorted(
            (_statement(each) for each in statements), key=lambda each: json.dumps(each, sort_keys=True)
        ),
    }


def requires_tls(policy: Mapping[str, Any]) -> bool:
    """Return whether a policy checks the transport of clients, so that plain NFS is refused."""
    return "aws:SecureTransport" in json.dumps(policy)


def _statement(statement: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in statement.items():
        if key == "Resource" and all(_OWN.fullmatch(str(each)) for each in _several(value)):
            continue
        if key in _LISTS:
            found[key] = _list(value)
        elif key in _WHO:
            found[key] = {kind: _list(who) for kind, who in ({"AWS": "*"} if value == "*" else value).items()}
        elif key == "Condition":
            found[key] = {test: {name: _list(wanted) for name, wanted in keys.items()} for test, keys in value.items()}
        elif key != "Sid":
            found[key] = value
    return found


def _list(value: Any) -> list[str]:
    # Conditions may contain both true and "true".
    texts = [str(each).lower() if isinstance(each, bool) else str(each) for each in _several(value)]
    return sorted(texts)


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


IMMUTABLE = ("performance_mode", "encrypted", "kms_key_id", "availability_zone")
"""Properties that AWS cannot change; another value needs another file system."""

LIFECYCLE = {
    "transition_to_ia": "TransitionToIA",
    "transition_to_primary": "TransitionToPrimaryStorageClass",
    "transition_to_archive": "TransitionToArchive",
}
"""Our names of the lifecycle rules -> AWS's names."""

TOKEN_LIMIT = 64


@dataclass(frozen=True)
class FileSystem:
    """The properties of a file system, desired or observed. None means not managed, or not read.

    :param provisioned_mibps: provisioned throughput in MiB/s.
    :param kms_key_id: id, ARN or alias of the key.
    :param availability_zone: zone of a One Zone file system.
    :param lifecycle: lifecycle rules by the names of `LIFECYCLE`; empty for none.
    :param backup: whether AWS Backup backs it up.
    :param policy: resource policy; empty for AWS's default.
    :param require_tls: only in the desired state: True sets the policy `REQUIRE_TLS`, False removes that policy but
        keeps any other.
    """

    performance_mode: str | None = None
    throughput_mode: str | None = None
    provisioned_mibps: float | None = None
    encrypted: bool | None = None
    kms_key_id: str | None = None
    availability_zone: str | None = None
    lifecycle: Mapping[str, str] | None = None
    backup: bool | None = None
    policy: Mapping[str, Any] | None = None
    tags: Mapping[str, str] | None = None
    require_tls: bool | None = None


# Defaults of AWS (API reference, CreateFileSystem).
_UNSAID = FileSystem("generalPurpose", "bursting", encrypted=False, lifecycle={}, policy={}, tags={})


def check(wanted: FileSystem, token: str) -> None:
    """Refuse properties that AWS cannot create.

    :raises TrainyardError: properties exclude each other, or the token is invalid.
    """
    if not 0 < len(token) <= TOKEN_LIMIT:
        _refuse(f"its token {token} has {len(token)} characters", f"Set one with 1 to {TOKEN_LIMIT} characters.")
    provisioned, amount = wanted.throughput_mode == "provisioned", wanted.provisioned_mibps
    if amount is not None and not provisioned:
        mode = wanted.throughput_mode or "not set"
        _refuse(
            f"provisioned_mibps is {amount:g} and throughput_mode is {mode}",
            "Set throughput_mode to provisioned, or remove provisioned_mibps.",
        )
    if provisioned and (amount is None or amount < 1):
        said = "not set" if amount is None else f"{amount:g}"
        _refuse(
            f"throughput_mode is provisioned and provisioned_mibps is {said}",
            "Set provisioned_mibps to 1 MiB/s or more.",
        )
    if wanted.performance_mode == "maxIO" and (wanted.throughput_mode == "elastic" or wanted.availability_zone):
        which = "elastic throughput" if wanted.throughput_mode == "elastic" else "a single zone"
        _refuse(f"performance_mode is maxIO with {which}", "Set generalPurpose, which AWS recommends in all cases.")
    if wanted.kms_key_id and not wanted.encrypted:
        _refuse("kms_key_id is set and encrypted is not", "Set encrypted to true, or remove kms_key_id.")


def _refuse(fault: str, remedy: str) -> NoReturn:
    raise TrainyardError(f"The file system is invalid: {fault}.", remedy=remedy)


def same_key(wanted: str, found: str | None) -> bool:
    """Return whether a key equals the one that AWS reports by ARN. Aliases are not resolved and count as equal."""
    name = wanted.rpartition(":")[2]
    if name.startswith("alias/"):
        return True
    return found is not None and name.removeprefix("key/") == found.rpartition("/")[2]


def conflicts(wanted: FileSystem, found: FileSystem) -> list[str]:
    """Return the differing properties that cannot be changed, each as `property is X, not Y`."""
    if wanted.kms_key_id and same_key(wanted.kms_key_id, found.kms_key_id):
        wanted = replace(wanted, kms_key_id=found.kms_key_id)
    return differing(IMMUTABLE, wanted, found)


def target(wanted: FileSystem, found: FileSystem | None, purge_tags: bool = False) -> FileSystem:
    """Return the state that the file system will have."""
    base = found or _UNSAID
    said = {name: value for name, value in vars(wanted).items() if value is not None and name != "require_tls"}
    if wanted.require_tls:
        said["policy"] = REQUIRE_TLS
    elif wanted.require_tls is False and normal(base.policy or {}) == normal(REQUIRE_TLS):
        said["policy"] = {}
    if wanted.throughput_mode:
        said["provisioned_mibps"] = wanted.provisioned_mibps
    if wanted.lifecycle is not None:
        # One call sets all rules, so the archive rule, which is not managed here, is kept.
        kept = {name: rule for name, rule in (base.lifecycle or {}).items() if name == "transition_to_archive"}
        said["lifecycle"] = {**wanted.lifecycle, **kept}
    said["tags"] = wanted_tags(wanted.tags, base.tags or {}, purge_tags)
    return replace(base, **said)


def shown(state: FileSystem | None, wanted: FileSystem) -> dict[str, Any]:
    """Return the properties that the caller set, in the form of the diff."""
    if state is None:
        return {}
    names = {name for name, value in vars(wanted).items() if value is not None}
    if wanted.throughput_mode:
        names.add("provisioned_mibps")
    if wanted.require_tls is not None:
        names.add("policy")
    names.discard("require_tls")
    values = {name: value for name, value in vars(state).items() if name in names}
    if values.get("policy"):
        values["policy"] = normal(values["policy"])
    if wanted.kms_key_id and same_key(wanted.kms_key_id, state.kms_key_id):
        values["kms_key_id"] = wanted.kms_key_id
    return values


def decide(wanted: FileSystem, found: FileSystem | None, token: str, purge_tags: bool = False) -> list[Change]:
    """Return the calls, in order, that bring a file system to the desired state.

    :param found: None if it does not exist.
    :raises TrainyardError: properties differ that AWS cannot change; the message lists all of them.
    """
    if found and (faults := conflicts(wanted, found)):
        raise TrainyardError(
            f"The file system of {token} cannot become the wanted one: {'; '.join(faults)}.",
            remedy="Set the existing values, or another token for a new file system.",
            differing=faults,
        )
    after = target(wanted, found, purge_tags)
    # The creation call sets all properties except these two.
    before = found or replace(after, lifecycle={}, policy={})
    creation = [] if found else [_creation(wanted, token)]
    return [
        *creation,
        *_throughput(before, after),
        *_lifecycle(before, after),
        *_backup(before, after),
        *_policy(before, after),
        *tag_changes(before.tags or {}, after.tags or {}),
    ]


def _creation(wanted: FileSystem, token: str) -> Change:
    parameters: dict[str, Any] = {
        "CreationToken": token,
        "PerformanceMode": wanted.performance_mode,
        "ThroughputMode": wanted.throughput_mode,
        "ProvisionedThroughputInMibps": wanted.provisioned_mibps,
        "Encrypted": wanted.encrypted,
        "KmsKeyId": wanted.kms_key_id,
        "AvailabilityZoneName": wanted.availability_zone,
        "Backup": wanted.backup,
        "Tags": to_list(wanted_tags(wanted.tags, {}, False)) or None,
    }
    said = {name: value for name, value in parameters.items() if value is not None}
    return Change(f"Create the file system of {token}", "efs:CreateFileSystem", said)


def _throughput(before: FileSystem, after: FileSystem) -> list[Change]:
    mode, amount = after.throughput_mode, after.provisioned_mibps
    if (before.throughput_mode, before.provisioned_mibps) == (mode, amount):
        return []
    parameters: dict[str, Any] = {"ThroughputMode": mode}
    if amount is None:
        return [Change(f"Change its throughput to {mode}", "efs:UpdateFileSystem", parameters)]
    parameters["ProvisionedThroughputInMibps"] = amount
    return [Change(f"Change its throughput to {mode}, {amount:g} MiB/s", "efs:UpdateFileSystem", parameters)]


def _lifecycle(before: FileSystem, after: FileSystem) -> list[Change]:
    rules = after.lifecycle or {}
    if (before.lifecycle or {}) == rules:
        return []
    # AWS requires one rule per element.
    policies = [{LIFECYCLE[name]: rules[name]} for name in LIFECYCLE if name in rules]
    said = ", ".join(f"{name} {rules[name]}" for name in LIFECYCLE if name in rules) or "none"
    return [Change(f"Set its lifecycle: {said}", "efs:PutLifecycleConfiguration", {"LifecyclePolicies": policies})]


def _backup(before: FileSystem, after: FileSystem) -> list[Change]:
    if before.backup == after.backup:
        return []
    parameters = {"BackupPolicy": {"Status": "ENABLED" if after.backup else "DISABLED"}}
    return [Change(f"Switch its backup {'on' if after.backup else 'off'}", "efs:PutBackupPolicy", parameters)]


def _policy(before: FileSystem, after: FileSystem) -> list[Change]:
    if normal(before.policy or {}) == normal(after.policy or {}):
        return []
    if not after.policy:
        return [Change("Remove its policy", "efs:DeleteFileSystemPolicy")]
    return [Change("Set its policy", "efs:PutFileSystemPolicy", {"Policy": json.dumps(after.policy)})]
