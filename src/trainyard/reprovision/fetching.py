"""Fetch from an untrusted server: check its objects, and limit their size."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ..core.errors import CommandError, TrainyardError
from .address import opened, without_password

FETCH_TIMEOUT = 120.0
FETCH_BYTES = 512 * 2**20
"""Limit of one fetch, 200 times the size of this project's history. The kernel cuts a larger pack (RLIMIT_FSIZE)."""
RESERVE_BYTES = 256 * 2**20
"""Space on the disk that a fetch leaves for the reports and the rest of the machine."""
SMALLEST_BYTES = 2**20

# Each fetch gives one pack, so the limit of a file bounds its size. Loose objects would be bounded one by one.
CHECKS = ("-c", "fetch.fsckObjects=true", "-c", "fetch.unpackLimit=1")


def fetch(git: Callable[..., str], path: Path, url: str) -> None:
    """Fetch branches and tags.

    :param git: `Repository.git`.
    :param path: of the repository.
    :raises TrainyardError: the server does not answer or sends too much, the disk is full, or git refuses an object.
    """
    address, env = opened(url)
    room = room_of(path)
    try:
        git(*CHECKS, "fetch", "--quiet", "--prune", "--no-write-fetch-head", "--", address,
            "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*",
            timeout=FETCH_TIMEOUT, env=env, largest=room)  # fmt: skip
    except CommandError as error:
        # Incomplete packs would fill the disk until the next run.
        left = list(path.glob("objects/**/tmp_*"))
        cut = any(each.stat().st_size >= room for each in left)
        for each in left:
            each.unlink(missing_ok=True)
        # The user name in an address may be a token, and git repeats it.
        said = f"it sends more than {room // 2**20} MiB." if cut else without_password(error.message)
        raise TrainyardError(f"Fetching from {without_password(address)} failed: {said}") from error


def room_of(path: Path) -> int:
    """Return the bytes that a fetch may write.

    :raises TrainyardError: the disk is nearly full.
    """
    disk = os.statvfs(path)
    # A pack has an index of up to its own size.
    room = min(FETCH_BYTES, (disk.f_bavail * disk.f_frsize - RESERVE_BYTES) // 2)
    if room < SMALLEST_BYTES:
        raise TrainyardError(
            f"The disk of {path} has less than {(RESERVE_BYTES + 2 * SMALLEST_BYTES) // 2**20} MiB left; nothing was "
            "fetched.",
            remedy="Make room there.",
        )
    return room
