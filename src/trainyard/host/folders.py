"""Folders of a host with their owners. Root creates and chowns them without following links of other users."""

from __future__ import annotations

import grp
import pwd
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..core import places
from ..core.errors import TrainyardError
from ..core.plan import Step


@dataclass(frozen=True)
class Folder:
    """One desired folder.

    :param path: absolute path.
    :param mode: permission bits.
    :param owner: user name or ID; empty keeps that of an existing folder. `group` is the same for the group.
    """

    path: str
    mode: int = 0o755
    owner: str = ""
    group: str = ""


def plan_folders(folders: Sequence[Folder]) -> tuple[list[Step], dict[str, Any], dict[str, Any]]:
    """Return the steps that create or correct folders, with their observed and desired states."""
    steps: list[Step] = []
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    for folder in folders:
        found = places.status(folder.path)
        if found and not stat.S_ISDIR(found.st_mode):
            raise TrainyardError(f"{folder.path} is not a folder.", remedy="Move it away, and run the playbook again.")
        owner, group = number(pwd.getpwnam, folder.owner), number(grp.getgrnam, folder.group)
        owned = found and owner in (-1, found.st_uid) and group in (-1, found.st_gid)
        if found and owned and stat.S_IMODE(found.st_mode) == folder.mode:
            continue
        steps.append(Step(f"Create the folder {folder.path}", partial(_make, folder)))
        before[folder.path] = f"{stat.S_IMODE(found.st_mode):04o} {found.st_uid}:{found.st_gid}" if found else None
        after[folder.path] = f"{folder.mode:04o} {folder.owner}:{folder.group}"
    return steps, before, after


def _make(folder: Folder) -> None:
    owner, group = number(pwd.getpwnam, folder.owner), number(grp.getgrnam, folder.group)
    if owner is None or group is None:
        raise TrainyardError(
            f"The owner {folder.owner}:{folder.group} of {folder.path} does not exist on this host.",
            remedy="Create the user and the group first.",
        )
    places.make_folder(folder.path, folder.mode, owner, group)


def number(look_up: Callable[[str], Sequence[Any]], name: str) -> int | None:
    """Return the ID of a user or group; -1 for an empty name, None for a name that the host does not know."""
    if name.isdigit():
        return int(name)
    try:
        return int(look_up(name)[2]) if name else -1
    except KeyError:
        return None
