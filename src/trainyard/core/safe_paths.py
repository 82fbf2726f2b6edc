"""Safe path resolution for root: never follow a link that another user could have made.

A link is followed if its folder belongs to root or to the caller, because administrators relocate folders with links.
In another user's folder a link is refused: that user could point root at any file of the host. The same holds for
folders that others may write to. A caller other than root still follows its own links in its own folders: a umask of
002 makes each of them group-writable, and no other user can create a link owned by the caller.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from .errors import TrainyardError

_WAY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
"""O_PATH: folders on the way, such as a home of mode 0711, need not be readable by the caller."""
_LINKS = 40
"""Maximum number of links in one path, the limit of Linux (path_resolution(7))."""


class LinkError(TrainyardError):
    """A path that crosses a link of another user."""


@contextmanager
def at(path: str, make: int | None = None) -> Iterator[tuple[int, str]]:
    """Resolve a path to the descriptor of its folder and its last name, which is not a link when checked.

    :param make: permission bits for missing folders; None creates none.
    :raises LinkError: the path crosses, or ends at, another user's link.
    :raises OSError: a folder is missing or is not a folder.
    """
    todo, links = [part for part in os.path.abspath(path).split("/")[::-1] if part], 0
    if not todo:
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    folders = [os.open("/", _WAY)]
    try:
        while True:
            name = todo.pop()
            if name == "..":
                # Only the text of a link can contain `..`. The parent is on the stack and needs no lookup.
                os.close(folders.pop()) if len(folders) > 1 else None
                continue
            link = _link(folders[-1], name)
            if link is None and not todo:
                yield folders[-1], name
                return
            if link is None:
                folders.append(_enter(folders[-1], name, make))
                continue
            links += 1
            if links > _LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            text, owner = link
            if fault := _fault(os.fstat(folders[-1]), owner):
                raise LinkError(f"{name} on the way to {path} is {fault[0]}.", remedy=fault[1])
            todo += [part for part in text.split("/")[::-1] if part not in ("", ".")]
            if text.startswith("/"):
                for each in folders[1:]:
                    os.close(each)
                del folders[1:]
            if not todo:
                raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    finally:
        for each in folders:
            os.close(each)


def make_folder(path: str, mode: int, owner: int = -1, group: int = -1) -> None:
    """Create a folder if missing, and set its owner and mode through its descriptor.

    :param owner: user ID, or -1 to keep the owner; `group` is the group ID.
    :raises TrainyardError: the file system refuses, or the path crosses another user's link.
    """
    try:
        with at(path, make=0o755) as (above, name):
            descriptor = _enter(above, name, 0o700, os.O_RDONLY)
            try:
                os.fchown(descriptor, owner, group)
                # After the owner: changing it clears the setgid bit.
                os.fchmod(descriptor, mode)
            finally:
                os.close(descriptor)
    except OSError as error:
        raise TrainyardError(f"The folder {path} cannot be created: {error.strerror}.") from error


def status(path: str) -> os.stat_result | None:
    """Return the status of a path without following a final link; None if it does not exist.

    :raises TrainyardError: the file system refuses, or the path crosses another user's link.
    """
    try:
        with at(path) as (above, name):
            return os.stat(name, dir_fd=above, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TrainyardError(f"{path} cannot be read: {error.strerror}.") from error


def _link(folder: int, name: str) -> tuple[str, int] | None:
    """Return the text and owner of a link; None if the name is missing or not a link.

    Both are read through one descriptor, so that the link cannot be replaced in between.
    """
    try:
        descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return None
    try:
        found = os.fstat(descriptor)
        return (os.readlink("", dir_fd=descriptor), found.st_uid) if stat.S_ISLNK(found.st_mode) else None
    finally:
        os.close(descriptor)


def _enter(folder: int, name: str, make: int | None, how: int = os.O_PATH) -> int:
    flags = how | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(name, flags, dir_fd=folder)
    except FileNotFoundError:
        if make is None:
            raise
    # Another process may create it first; the second open checks that it is a folder.
    with suppress(FileExistsError):
        os.mkdir(name, make, dir_fd=folder)
    return os.open(name, flags, dir_fd=folder)


def _fault(folder: os.stat_result, owner: int) -> tuple[str, str] | None:
    """Return why another user may have made a link, and the remedy; None if only root and the caller can.

    :param folder: status of the link's folder.
    :param owner: user ID of the link's owner.
    """
    caller = os.geteuid()
    if folder.st_uid not in (0, caller):
        return "a link in a folder of another user", "Remove the link, or set the folder's owner to root."
    if not folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or (caller and folder.st_uid == owner == caller):
        return None
    # In a sticky folder such as /tmp, users can replace only their own links.
    if folder.st_mode & stat.S_ISVTX:
        return None if owner in (0, caller) else ("a link of another user", "Remove the link.")
    others = "all users" if folder.st_mode & stat.S_IWOTH else "its group"
    return f"a link in a folder that is writable by {others}", "Set the folder's mode to 0755."
