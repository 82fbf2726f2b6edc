"""The one way to write a small text file of a host, and a digest over several texts."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping

from .errors import TrainyardError


def write(path: str, text: str, mode: int, owner: int = -1, group: int = -1) -> None:
    """Write a text file so that a reader, or the next boot after a power cut, finds the old text or the new one.

    A file that is replaced hands on its owner, access control list and security label; a new one gets those that the
    kernel gives in its folder. A link is followed, a bind-mounted file (/etc/hosts in a container) is written in place.

    :param mode: permission bits, in force before the text is.
    :param owner: number of the user, -1 keeps that of the file that is there; `group` is the same for the group.
    :raises TrainyardError: the file system refuses.
    """
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    try:
        os.makedirs(folder, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=".trainyard-", dir=folder)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as stream:
                if os.path.exists(target):
                    there = os.stat(target)
                    os.fchown(stream.fileno(), there.st_uid, there.st_gid)
                    shutil.copystat(target, temporary)
                os.fchown(stream.fileno(), owner, group)
                os.fchmod(stream.fileno(), mode)
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, target)
        except OSError as error:
            os.unlink(temporary)
            if error.errno != errno.EBUSY:
                raise
            with open(target, "w", encoding="utf-8", errors="surrogateescape") as stream:
                stream.write(text)
            os.chown(target, owner, group)
            os.chmod(target, mode)
        sync(folder)
    except OSError as error:
        raise TrainyardError(f"{path} cannot be written: {error.strerror}.") from error


def sync(folder: str) -> None:
    """Have a folder's names on the disk: a rename is not, before its folder is."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
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
