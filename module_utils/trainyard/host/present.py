"""A text file of a host as it is, and the part of a shared one that is ours."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from ..core.errors import TrainyardError

BLOCK_BEGIN, BLOCK_END = "# BEGIN trainyard", "# END trainyard"


@dataclass(frozen=True)
class Found:
    """A file as it is."""

    text: str
    mode: int
    owner: int
    group: int


def read(path: str) -> Found | None:
    """The file; None where there is none.

    :raises TrainyardError: a folder is in its place, or a file in that of a folder.
    """
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            status = os.fstat(stream.fileno())
            return Found(stream.read(), stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid)
    except FileNotFoundError:
        return None
    except (IsADirectoryError, NotADirectoryError) as error:
        raise TrainyardError(
            f"{path} cannot be read: {error.strerror}.", remedy="Move away what stands in the way of the file."
        ) from error


def with_block(text: str, block: str) -> str:
    """The text with its marked block replaced, appended, or (empty block) removed."""
    lines = text.splitlines(keepends=True)
    begin = next((i for i, line in enumerate(lines) if line.rstrip() == BLOCK_BEGIN), None)
    end = next((i for i, line in enumerate(lines) if line.rstrip() == BLOCK_END), None)
    body = [f"{BLOCK_BEGIN}\n", block.rstrip("\n") + "\n", f"{BLOCK_END}\n"] if block.strip() else []
    if begin is not None and end is not None and begin < end:
        return "".join(lines[:begin] + body + lines[end + 1 :])
    if lines and body and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return "".join(lines + body)
