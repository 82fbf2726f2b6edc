"""Small files that a power cut leaves either as they were or as they should be."""

from __future__ import annotations

import os
from pathlib import Path


def write(path: Path, text: str) -> None:
    """Replace a file, which has reached the disk when this returns.

    :raises OSError: the folder cannot be written.
    """
    beside = path.with_suffix(".part")
    with beside.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(beside, path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
