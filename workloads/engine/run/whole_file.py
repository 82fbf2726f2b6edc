"""Write files atomically: after a power cut they have either the old or the new content."""

from __future__ import annotations

import os
from pathlib import Path


def write(path: Path, text: str) -> None:
    """Replace a file, and return when the new content is on the disk.

    :raises OSError: the folder cannot be written.
    """
    beside = path.with_suffix(".part")
    with beside.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(beside, path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk. TensorFlow and `shutil` leave that to the kernel.

    :raises OSError: the disk has not accepted it.
    """
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def sync_tree(folder: Path) -> None:
    """Flush a folder with its whole content to the disk.

    :raises OSError: the disk has not accepted it.
    """
    for path in (*folder.rglob("*"), folder):
        sync(path)


def make_folder(path: Path) -> None:
    """Create a folder with its missing parents, and return when they are on the disk.

    :raises OSError: it cannot be created.
    """
    absent = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for each in absent:
        sync(each.parent)
