"""Fetching from a server that may be anybody's: its objects are checked, and what it sends has a limit."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ..core.errors import CommandError, TrainyardError
from .address import opened, without_password

FETCH_TIMEOUT = 120.0
FETCH_BYTES = 512 * 2**20
"""One fetch: 200 times this project's own history. A larger pack is cut off by the kernel (RLIMIT_FSIZE)."""
RESERVE_BYTES = 256 * 2**20
"""Of the disk, which a fetch leaves to the reports and to the rest of the machine."""
SMALLEST_BYTES = 2**20

# One pack for each fetch, whose size the limit of a file bounds; loose objects would be bounded one by one.
CHECKS = ("-c", "fetch.fsckObjects=true", "-c", "fetch.unpackLimit=1")


def fetch(git: Callable[..., str], path: Path, url: str) -> None:
    """Fetch branches and tags.

    :param git: `Repository.git`.
    :param path: of the repository.
    :raises TrainyardError: no answer, no room, too much, or objects that git refuses.
    """
    address, env = opened(url)
    room = room_of(path)
    try:
        git(*CHECKS, "fetch", "--quiet", "--prune", "--no-write-fetch-head", "--", address,
            "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*",
            timeout=FETCH_TIMEOUT, env=env, largest=room)  # fmt: skip
    except CommandError as error:
        # What was received until then fills the disk until the next run otherwise.
        left = list(path.glob("objects/**/tmp_*"))
        cut = any(each.stat().st_size >= room for each in left)
        for each in left:
            each.unlink(missing_ok=True)
        # The name in an address may be a token, and git repeats it.
        said = f"it sends more than {room // 2**20} MiB." if cut else without_password(error.message)
        raise TrainyardError(f"Fetching from {without_password(address)} failed: {said}") from error


def room_of(path: Path) -> int:
    """Bytes that a fetch may write.

    :raises TrainyardError: the disk is nearly full.
    """
    disk = os.statvfs(path)
    # A pack comes with an index of up to its own size.
    room = min(FETCH_BYTES, (disk.f_bavail * disk.f_frsize - RESERVE_BYTES) // 2)
    if room < SMALLEST_BYTES:
        raise TrainyardError(
            f"The disk of {path} has less than {(RESERVE_BYTES + 2 * SMALLEST_BYTES) // 2**20} MiB left; nothing was "
            "fetched.",
            remedy="Make room there.",
        )
    return room
