"""Access points of a file system, identified by name: desired state, observed state, calls to reconcile them.

The plan reads the access points, and executes the changes that `decide` returns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..core.errors import TrainyardError
from ..core.plan import Plan, Step
from .changes import Change, differing, tag_changes, to_list, to_mapping, wanted_tags
from .client import AVAILABLE, BUSY, GONE, LEAVING, Aws, AwsError, Goal, Patience, State, persist, settle

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


def find(aws: Aws, file_system_id: str) -> list[AccessPoint]:
    """Return all access points of a file system; empty if the file system does not exist."""
    name = f"the file system {file_system_id}"
    found = aws.items(
        "efs:DescribeAccessPoints", "AccessPoints", name, fine=("FileSystemNotFound",), FileSystemId=file_system_id
    )
    return [observed(each) for each in found]


class AccessPointsPlan:
    """The access points of one file system.

    :param file_system_id: only in check mode, empty for a file system that does not exist yet.
    :param wanted: the desired access points; None removes all.
    :param purge: also delete access points that are not desired.
    """

    def __init__(
        self,
        aws: Aws,
        file_system_id: str,
        wanted: Sequence[AccessPoint] | None,
        *,
        purge: bool = False,
        purge_tags: bool = False,
        patience: Patience,
    ) -> None:
        self._aws, self._id, self._patience = aws, file_system_id, patience
        self._wanted = list(wanted or ())
        self._purge, self._purge_tags = purge or wanted is None, purge_tags
        self._found: list[AccessPoint] = []
        self._stale = False

    def plan(self) -> Plan:
        """Compare and plan the changes.

        :raises TrainyardError: EFS would refuse an access point, or cannot change an existing one.
        """
        check(self._wanted)
        found = self._found = find(self._aws, self._id) if self._id else []
        changes = decide(self._id, self._wanted, found, purge=self._purge, purge_tags=self._purge_tags)
        staying, going = self._pairs(), [each for each in self._others() if self._purge]
        before = {have.name: self._shown(want, have, have.tags) for want, have in staying if have}
        after = {}
        for want, have in staying:
            after[want.name] = self._shown(want, have or want, target_tags(want, have, self._purge_tags))
        before |= {each.name or each.id: shown(each, None) for each in going if each.state not in LEAVING}
        return Plan([Step(each.what, partial(self._make, each)) for each in changes], before, after)

    def settled(self) -> None:
        """Wait until the desired access points are available, and the deleted ones are gone."""
        self._wait([want.name for want, _ in self._pairs()], AVAILABLE)
        if self._purge:
            self._wait([], GONE)

    def result(self) -> list[dict[str, Any]]:
        """Return the access points, in check mode as they will be; values that AWS has not chosen yet are empty."""
        return [
            {
                "name": want.name,
                "id": have.id if have else "",
                "arn": have.arn if have else "",
                "volume_handle": f"{self._id}::{have.id}" if have else "",
                "path": want.path,
                "state": have.state if have else "absent",
            }
            for want, have in self._pairs()
        ]

    def _pairs(self) -> list[tuple[AccessPoint, AccessPoint | None]]:
        return pairs(self._id, self._wanted, self._found)

    def _others(self) -> list[AccessPoint]:
        ours = {have.id for _, have in self._pairs() if have}
        return [each for each in self._found if each.id not in ours]

    def _shown(self, want: AccessPoint, state: AccessPoint, tags: Any) -> dict[str, Any]:
        asked = AccessPoint(
            want.name, state.user if want.user else None, state.path, state.creation if want.creation else None
        )
        return shown(asked, tags if want.tags is not None else None)

    def _wait(self, names: Sequence[str], goal: Goal) -> None:
        if not self._stale and all(state in goal.reached for state in self._states(names, goal).values()):
            return

        def look() -> dict[str, State]:
            self._found, self._stale = find(self._aws, self._id), False
            return self._states(names, goal)

        settle(look, goal, self._patience)

    def _states(self, names: Sequence[str], goal: Goal) -> dict[str, State]:
        if goal is GONE:
            return {f"the access point {each.id}": each.state for each in self._others()}
        return {
            f"the access point {want.name}": have.state if have else None
            for want, have in self._pairs()
            if want.name in names
        }

    def _make(self, change: Change) -> None:
        self._stale = True
        parameters = dict(change.parameters)
        name = f"{parameters.get('AccessPointId') or parameters.get('ResourceId') or 'an access point'} of {self._id}"
        if change.operation != "efs:CreateAccessPoint":
            self._aws.call(change.operation, name, fine=change.fine, **parameters)
            return
        try:
            call = partial(self._aws.call, change.operation, name, FileSystemId=self._id, **parameters)
            persist(call, (BUSY,), self._patience)
        except AwsError as error:
            # An earlier call whose answer was lost created it. The next run compares it like any existing one.
            if error.code != "AccessPointAlreadyExists":
                raise
