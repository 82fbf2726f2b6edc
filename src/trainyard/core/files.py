"""The one way to write a small text file of a host, and a digest over several texts."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress

from . import places
from .errors import TrainyardError

_SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_READ = os.O_RDONLY | _SAFE


def write(path: str, text: str, mode: int, owner: int = -1, group: int = -1) -> None:
    """Write a text file so that a reader, or the next boot after a power cut, finds the old text or the new one.

    A file that is replaced hands on its owner, access control list and security label; a new one gets those that the
    kernel gives in its folder. A link is followed where root or the caller has made it, and refused elsewhere. A
    bind-mounted file (/etc/hosts in a container) is written in place.

    :param mode: permission bits, in force before the text is.
    :param owner: number of the user, -1 keeps that of the file that is there; `group` is the same for the group.
    :raises TrainyardError: the file system refuses, or another user's link is in the way.
    """
    data = text.encode(errors="surrogateescape")
    try:
        with places.at(path, make=0o755) as (folder, name):
            _replace(folder, name, data, mode, owner, group)
            # A folder that the caller may not read is left to the kernel.
            with suppress(PermissionError):
                sync(".", folder)
    except OSError as error:
        raise TrainyardError(f"{path} cannot be written: {error.strerror}.") from error


def read(path: str) -> tuple[str, os.stat_result] | None:
    """Text and status of a regular file; None where there is none. Links are followed as for `write`.

    :raises TrainyardError: another user's link is in the way.
    :raises OSError: the file system refuses.
    """
    try:
        with places.at(path) as (folder, name):
            # O_NONBLOCK: a named pipe in the place of a file would hold the caller for ever.
            descriptor = os.open(name, _READ, dir_fd=folder)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, encoding="utf-8", errors="surrogateescape") as stream:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise TrainyardError(f"{path} is no regular file.", remedy="Move it away.")
        return stream.read(), found


def _replace(folder: int, name: str, data: bytes, mode: int, owner: int, group: int) -> None:
    temporary = f".trainyard-{secrets.token_hex(8)}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            _hand_on(folder, name, descriptor)
            os.fchown(descriptor, owner, group)
            os.fchmod(descriptor, mode)
            stream.write(data)
            stream.flush()
            os.fsync(descriptor)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError as error:
        os.unlink(temporary, dir_fd=folder)
        if error.errno != errno.EBUSY:
            raise
        descriptor = os.open(name, os.O_WRONLY | os.O_TRUNC | _SAFE, dir_fd=folder)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            os.fchown(descriptor, owner, group)
            os.fchmod(descriptor, mode)


def _hand_on(folder: int, name: str, descriptor: int) -> None:
    """Give a new file the owner, access control list and security label of the one that it replaces."""
    try:
        there = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    os.fchown(descriptor, there.st_uid, there.st_gid)
    if not stat.S_ISREG(there.st_mode):
        return
    with suppress(OSError):
        old = os.open(name, _READ, dir_fd=folder)
        try:
            for each in os.listxattr(old):
                # A file system may refuse one, and take the others.
                with suppress(OSError):
                    os.setxattr(descriptor, each, os.getxattr(old, each))
        finally:
            os.close(old)


def sync(folder: str, above: int | None = None) -> None:
    """Have a folder's names on the disk: a rename is not, before its folder is.

    :param above: descriptor of the folder that the path begins in; None for the working folder.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=above)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def digest_of(texts: Mapping[str, str]) -> str:
    """One digest over named texts; each part carries its length, so that no two sets look alike."""
    total = hashlib.sha256()
    for name in sorted(texts):
        for part in (name, texts[name]):
            data = part.encode(errors="surrogateescape")
            total.update(b"%d:" % len(data) + data)
    return total.hexdigest()
