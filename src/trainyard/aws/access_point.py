"""Access points of a file system, identified by name: desired state, observed state, calls to reconcile them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.errors import TrainyardError
from .changes import Change, differing
from .states import LEAVING
from .tags import tag_changes, to_list, to_mapping, wanted_tags

IMMUTABLE = ("user", "path", "creation")
"""Properties that AWS cannot change; another value needs another access point."""

PATH_LIMIT = 100
DEPTH_LIMIT = 4
"""Most characters and folders of a root directory that EFS accepts."""

PATH_REMEDY = "Set an absolute path from the root of the file system, for example /datasets."


@dataclass(frozen=True)
class AccessPoint:
    """An access point, desired or observed. None means that AWS chooses the value, or that it is not changed.

    :param user: numbers `uid`, `gid` and `secondary_gids` that EFS enforces for clients of the access point.
    :param path: root directory, absolute.
    :param creation: `owner_uid`, `owner_gid` and `permissions` (octal) of that directory if EFS creates it.
    :param id: empty for a desired access point.
    """

    name: str
    user: Mapping[str, Any] | None = None
    path: str = "/"
    creation: Mapping[str, Any] | None = None
    tags: Mapping[str, str] | None = None
    id: str = ""
    arn: str = ""
    token: str = ""
    state: str = ""


def token_of(file_system_id: str, name: str) -> str:
    """Return the client token of an access point, derived from its name: 64 characters, the maximum of EFS."""
    return hashlib.sha256(f"{file_system_id}/{name}".encode()).hexdigest()


def bare(permissions: str) -> str:
    """Strip leading zeros of an octal number, so that 0755 and 755 are equal."""
    return permissions.lstrip("0") or "0"


def observed(description: Mapping[str, Any]) -> AccessPoint:
    """Convert an access point description of EFS."""
    user, root = description.get("PosixUser"), description.get("RootDirectory") or {}
    made = root.get("CreationInfo")
    return AccessPoint(
        name=description.get("Name", ""),
        user=user and {"uid": user["Uid"], "gid": user["Gid"], "secondary_gids": sorted(user.get("SecondaryGids", []))},
        path=root.get("Path", "/"),
        creation=made
        and {
            "owner_uid": made["OwnerUid"],
            "owner_gid": made["OwnerGid"],
            "permissions": bare(made["Permissions"]),
        },
        tags=to_mapping(description.get("Tags")),
        id=description["AccessPointId"],
        arn=description.get("AccessPointArn", ""),
        token=description.get("ClientToken", ""),
        state=description["LifeCycleState"],
    )


def fault_of(path: str) -> str:
    """Return why EFS would refuse a path as root directory; empty if it is valid."""
    parts = path.split("/")[1:]
    if not path.startswith("/"):
        return "not absolute"
    if path != "/" and ("" in parts or any(part.startswith(".") for part in parts)):
        return "a part is empty or begins with a dot"
    if len(parts) > DEPTH_LIMIT or len(path) > PATH_LIMIT:
        return f"more than {DEPTH_LIMIT} folders or {PATH_LIMIT} characters"
    if any(letter in "$#<>;`|&?{}^*\n" for letter in path):
        return "a character that EFS does not accept"
    return ""


def check(wanted: Iterable[AccessPoint]) -> None:
    """Refuse duplicate names, and access points that EFS would refuse.

    :raises TrainyardError: an access point is invalid; the message contains its name and value.
    """
    seen: set[str] = set()
    for each in wanted:
        if fault := fault_of(each.path):
            raise TrainyardError(
                f"The access point {each.name} cannot have the path {each.path}: {fault}.", remedy=PATH_REMEDY
            )
        if each.name in seen:
            raise TrainyardError(f"Two access points have the name {each.name}.", remedy="List each name once.")
        seen.add(each.name)


def pairs(
    file_system_id: str, wanted: Iterable[AccessPoint], found: Iterable[AccessPoint]
) -> list[tuple[AccessPoint, AccessPoint | None]]:
    """Pair each desired access point with the existing one, or None."""
    there = {each.token: each for each in found if each.state not in LEAVING}
    return [(each, there.get(token_of(file_system_id, each.name))) for each in wanted]


def target_tags(wanted: AccessPoint, found: AccessPoint | None, purge: bool) -> dict[str, str]:
    """Return the tags that an access point will have; its name is one of them."""
    asked = None if wanted.tags is None else {**wanted.tags, "Name": wanted.name}
    if found is None:
        return wanted_tags(asked or {"Name": wanted.name}, {}, False)
    return wanted_tags(asked, found.tags or {}, purge)


def decide(
    file_system_id: str,
    wanted: Sequence[AccessPoint],
    found: Sequence[AccessPoint],
    *,
    purge: bool = False,
    purge_tags: bool = False,
) -> list[Change]:
    """Return the calls that bring the access points of a file system to the desired state.

    :param purge: delete access points that are not desired.
    :raises TrainyardError: an access point differs in a property that AWS cannot change.
    """
    changes: list[Change] = []
    for want, have in pairs(file_system_id, wanted, found):
        if have is None:
            changes.append(_creation(file_system_id, want))
            continue
        if faults := differing(IMMUTABLE, want, have):
            raise TrainyardError(
                f"The access point {want.name} ({have.id}) cannot become the wanted one: {'; '.join(faults)}.",
                remedy="Set the existing values, or give the new access point another name.",
                differing=faults,
            )
        for change in tag_changes(
            have.tags or {}, target_tags(want, have, purge_tags), f"the access point {want.name}"
        ):
            changes.append(Change(change.what, change.operation, {"ResourceId": have.id, **change.parameters}))
    kept = {token_of(file_system_id, each.name) for each in wanted}
    for each in found if purge else ():
        if each.token not in kept and each.state not in LEAVING:
            what = f"Delete the access point {each.name or each.id} ({each.id}); the files in {each.path} stay"
            parameters = {"AccessPointId": each.id}
            changes.append(Change(what, "efs:DeleteAccessPoint", parameters, fine=("AccessPointNotFound",)))
    return changes


def _creation(file_system_id: str, wanted: AccessPoint) -> Change:
    root: dict[str, Any] = {"Path": wanted.path}
    if wanted.creation:
        root["CreationInfo"] = {
            "OwnerUid": wanted.creation["owner_uid"],
            "OwnerGid": wanted.creation["owner_gid"],
            "Permissions": wanted.creation["permissions"].zfill(4),
        }
    parameters: dict[str, Any] = {
        "ClientToken": token_of(file_system_id, wanted.name),
        "Tags": to_list(target_tags(wanted, None, False)),
        "RootDirectory": root,
    }
    if wanted.user:
        parameters["PosixUser"] = {
            "Uid": wanted.user["uid"],
            "Gid": wanted.user["gid"],
            "SecondaryGids": wanted.user["secondary_gids"],
        }
    return Change(f"Create the access point {wanted.name} on {wanted.path}", "efs:CreateAccessPoint", parameters)


def shown(access_point: AccessPoint, tags: Mapping[str, str] | None) -> dict[str, Any]:
    """Return an access point in the form of the diff."""
    values = {name: getattr(access_point, name) for name in IMMUTABLE if getattr(access_point, name) is not None}
    return values if tags is None else {**values, "tags": dict(tags)}
