"""Atomic reads and writes of small text files on a host, and a digest over several texts."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress

from . import safe_paths
from .errors import TrainyardError

_SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_READ = os.O_RDONLY | _SAFE


def write(path: str, text: str, mode: int, owner: int = -1, group: int = -1) -> None:
    """Write a text file atomically: readers, and the next boot after a power cut, see the old or the new text.

    A replaced file keeps its owner, access control list and security label. A new file gets the defaults of its
    folder. Links made by root or the caller are followed; all other links are refused. A bind-mounted file
    (/etc/hosts in a container) is written in place.

    :param mode: permission bits, set before the text is written.
    :param owner: user ID, or -1 to keep the existing file's owner; `group` is the group ID.
    :raises TrainyardError: the file system refuses, or the path crosses another user's link.
    """
    data = text.encode(errors="surrogateescape")
    try:
        with safe_paths.at(path, make=0o755) as (folder, name):
            _replace(folder, name, data, mode, owner, group)
            # A folder that the caller may not read cannot be synced.
            with suppress(PermissionError):
                sync(".", folder)
    except OSError as error:
        raise TrainyardError(f"{path} cannot be written: {error.strerror}.") from error


def read(path: str) -> tuple[str, os.stat_result] | None:
    """Return the text and status of a regular file; None if it does not exist. Links are followed as in `write`.

    :raises TrainyardError: the path crosses another user's link, or is not a regular file.
    :raises OSError: the file system refuses.
    """
    try:
        with safe_paths.at(path) as (folder, name):
            # O_NONBLOCK: opening a named pipe would otherwise block for ever.
            descriptor = os.open(name, _READ, dir_fd=folder)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, encoding="utf-8", errors="surrogateescape") as stream:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise TrainyardError(f"{path} is not a regular file.", remedy="Move it away.")
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
    """Copy the owner, access control list and security label of the replaced file to the new one."""
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
                # A file system may refuse one attribute and accept the others.
                with suppress(OSError):
                    os.setxattr(descriptor, each, os.getxattr(old, each))
        finally:
            os.close(old)


def sync(folder: str, above: int | None = None) -> None:
    """Flush a folder to disk: a rename is durable only after that.

    :param above: descriptor of the folder that the path is relative to; None for the working directory.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=above)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def digest_of(texts: Mapping[str, str]) -> str:
    """Return one digest over named texts. Each part is prefixed by its length, so that no two sets collide."""
    total = hashlib.sha256()
    for name in sorted(texts):
        for part in (name, texts[name]):
            data = part.encode(errors="surrogateescape")
            total.update(b"%d:" % len(data) + data)
    return total.hexdigest()
