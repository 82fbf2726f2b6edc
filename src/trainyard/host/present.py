"""Read text files of a host, and edit our block in shared ones."""

from __future__ import annotations

import stat
from dataclasses import dataclass

from ..core import files
from ..core.errors import TrainyardError

BLOCK_BEGIN, BLOCK_END = "# BEGIN trainyard", "# END trainyard"


@dataclass(frozen=True)
class Found:
    """An existing file: text, permission bits, user ID and group ID."""

    text: str
    mode: int
    owner: int
    group: int


def read(path: str) -> Found | None:
    """Read a file; None if it does not exist. No link of another user is followed.

    :raises TrainyardError: the path is a folder, has a file in place of a folder, or crosses another user's link.
    """
    try:
        found = files.read(path)
    except (IsADirectoryError, NotADirectoryError) as error:
        raise TrainyardError(
            f"{path} cannot be read: {error.strerror}.", remedy="Move the conflicting file or folder away."
        ) from error
    return Found(found[0], stat.S_IMODE(found[1].st_mode), found[1].st_uid, found[1].st_gid) if found else None


def with_block(text: str, block: str) -> str:
    """Return the text with its marked block replaced, appended, or (empty block) removed."""
    lines = text.splitlines(keepends=True)
    begin = next((i for i, line in enumerate(lines) if line.rstrip() == BLOCK_BEGIN), None)
    end = next((i for i, line in enumerate(lines) if line.rstrip() == BLOCK_END), None)
    body = [f"{BLOCK_BEGIN}\n", block.rstrip("\n") + "\n", f"{BLOCK_END}\n"] if block.strip() else []
    if begin is not None and end is not None and begin < end:
        return "".join(lines[:begin] + body + lines[end + 1 :])
    if lines and body and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return "".join(lines + body)
