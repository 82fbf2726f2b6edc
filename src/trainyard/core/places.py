"""A place of the file system that root may write to: the way there follows no link that another user has made.

A link is followed where its folder belongs to root or to the caller, as administrators move folders with links. Below a
folder of another user, that user could lead root to any file of the host, so that a link there is refused. The same
holds for a folder that others may write to. A caller that is not root follows its own links in its own folders all the
same: a umask of 002 makes each of them writable by its group, and no other user can make a link of the caller.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from .errors import TrainyardError

_WAY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
"""O_PATH: a folder of the way, such as a home of mode 0711, need not be readable for its user."""
_LINKS = 40
"""Links on one way, as Linux has it (path_resolution(7))."""


class LinkError(TrainyardError):
    """A link of another user on the way to a file."""


@contextmanager
def at(path: str, make: int | None = None) -> Iterator[tuple[int, str]]:
    """The folder of a path as a descriptor, and the last name, which is no link when it is looked at.

    :param make: permission bits of the folders that are missing; None makes none.
    :raises LinkError: another user's link is on the way, or at its end.
    :raises OSError: a folder is missing or is none.
    """
    todo, links = [part for part in os.path.abspath(path).split("/")[::-1] if part], 0
    if not todo:
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    folders = [os.open("/", _WAY)]
    try:
        while True:
            name = todo.pop()
            if name == "..":
                # A link's own text may hold it. The folders of the way are kept, so that it needs no look.
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
    """Make a folder, or give the one that is there its owner and mode, by its descriptor.

    :param owner: number of the user, -1 leaves it alone; `group` is the same for the group.
    :raises TrainyardError: the file system refuses, or another user's link is in the way.
    """
    try:
        with at(path, make=0o755) as (above, name):
            descriptor = _enter(above, name, 0o700, os.O_RDONLY)
            try:
                os.fchown(descriptor, owner, group)
                # After the owner, whose change takes the bits away that give a group.
                os.fchmod(descriptor, mode)
            finally:
                os.close(descriptor)
    except OSError as error:
        raise TrainyardError(f"The folder {path} cannot be made: {error.strerror}.") from error


def status(path: str) -> os.stat_result | None:
    """The status of what is at a path; None where nothing is.

    :raises TrainyardError: the file system refuses, or another user's link is in the way.
    """
    try:
        with at(path) as (above, name):
            return os.stat(name, dir_fd=above, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TrainyardError(f"{path} cannot be read: {error.strerror}.") from error


def _link(folder: int, name: str) -> tuple[str, int] | None:
    """The text and the owner of a link; None for everything else, also for nothing.

    Both come from one descriptor, so that no other link can take the name between the two.
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
    # Where another process was faster, it must be a folder all the same.
    with suppress(FileExistsError):
        os.mkdir(name, make, dir_fd=folder)
    return os.open(name, flags, dir_fd=folder)


def _fault(folder: os.stat_result, owner: int) -> tuple[str, str] | None:
    """Why another user may have made a link, and the remedy; None where only root and the caller can.

    :param folder: of the link.
    :param owner: number of the link's user.
    """
    caller = os.geteuid()
    if folder.st_uid not in (0, caller):
        return "a link in a folder of another user", "Remove the link, or set the folder's owner to root."
    if not folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or (caller and folder.st_uid == owner == caller):
        return None
    # In a folder like /tmp each user may remove its own names alone.
    if folder.st_mode & stat.S_ISVTX:
        return None if owner in (0, caller) else ("a link of another user", "Remove the link.")
    others = "all users" if folder.st_mode & stat.S_IWOTH else "its group"
    return f"a link in a folder that is writable by {others}", "Set the folder's mode to 0755."
