"""Access points of a file system, known by their names: what is wanted, what is there, the calls between the two."""

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
"""What AWS cannot change; another value needs another access point."""

PATH_LIMIT = 100
DEPTH_LIMIT = 4
"""Characters and folders of a root directory that EFS takes."""

PATH_REMEDY = "Write it from the root of the file system, /datasets for one."


@dataclass(frozen=True)
class AccessPoint:
    """An access point, wanted or observed; None is left to AWS or alone.

    :param user: numbers `uid`, `gid` and `secondary_gids` of whoever comes through it.
    :param path: root directory, absolute.
    :param creation: `owner_uid`, `owner_gid` and `permissions` (octal) of that directory where EFS has to make it.
    :param id: empty for one that is wanted only.
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
    """The client token of an access point: 64 characters, the most that EFS takes, of the same for the same name."""
    return hashlib.sha256(f"{file_system_id}/{name}".encode()).hexdigest()


def bare(permissions: str) -> str:
    """An octal number without zeros before it, so that 0755 and 755 are the same."""
    return permissions.lstrip("0") or "0"


def observed(description: Mapping[str, Any]) -> AccessPoint:
    """An access point as EFS describes it."""
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
    """Why EFS would refuse a path as a root directory; empty where it would not."""
    parts = path.split("/")[1:]
    if not path.startswith("/"):
        return "not absolute"
    if path != "/" and ("" in parts or any(part.startswith(".") for part in parts)):
        return "a part is empty or begins with a dot"
    if len(parts) > DEPTH_LIMIT or len(path) > PATH_LIMIT:
        return f"more than {DEPTH_LIMIT} folders or {PATH_LIMIT} characters"
    if any(letter in "$#<>;`|&?{}^*\n" for letter in path):
        return "a character that EFS does not take"
    return ""


def check(wanted: Iterable[AccessPoint]) -> None:
    """Refuse access points that EFS would refuse, or that would be one.

    :raises TrainyardError: names the access point and the value.
    """
    seen: set[str] = set()
    for each in wanted:
        if fault := fault_of(each.path):
            raise TrainyardError(
                f"The access point {each.name} cannot have the path {each.path}: {fault}.", remedy=PATH_REMEDY
            )
        if each.name in seen:
            raise TrainyardError(f"Two access points have the name {each.name}.", remedy="Name each access point once.")
        seen.add(each.name)


def pairs(
    file_system_id: str, wanted: Iterable[AccessPoint], found: Iterable[AccessPoint]
) -> list[tuple[AccessPoint, AccessPoint | None]]:
    """Each wanted access point with the one that is there."""
    there = {each.token: each for each in found if each.state not in LEAVING}
    return [(each, there.get(token_of(file_system_id, each.name))) for each in wanted]


def target_tags(wanted: AccessPoint, found: AccessPoint | None, purge: bool) -> dict[str, str]:
    """The tags that an access point will have; its name is one of them."""
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
    """The calls that bring the access points of a file system from how they are to how they are wanted.

    :param purge: access points that are not wanted go.
    :raises TrainyardError: one differs in what AWS cannot change.
    """
    changes: list[Change] = []
    for want, have in pairs(file_system_id, wanted, found):
        if have is None:
            changes.append(_creation(file_system_id, want))
            continue
        if faults := differing(IMMUTABLE, want, have):
            raise TrainyardError(
                f"The access point {want.name} ({have.id}) cannot become the wanted one: {'; '.join(faults)}.",
                remedy="Set these as they are, or give the new one another name.",
                differing=faults,
            )
        for change in tag_changes(
            have.tags or {}, target_tags(want, have, purge_tags), f"the access point {want.name}"
        ):
            changes.append(Change(change.what, change.operation, {"ResourceId": have.id, **change.parameters}))
    kept = {token_of(file_system_id, each.name) for each in wanted}
    for each in found if purge else ():
        if each.token not in kept and each.state not in LEAVING:
            what = f"Delete the access point {each.name or each.id} ({each.id}); what lies in {each.path} stays"
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
    """An access point as the diff shows it."""
    values = {name: getattr(access_point, name) for name in IMMUTABLE if getattr(access_point, name) is not None}
    return values if tags is None else {**values, "tags": dict(tags)}
