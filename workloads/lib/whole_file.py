"""Files that a power cut leaves either as they were or as they should be."""

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
    sync(path.parent)


def sync(path: Path) -> None:
    """Bring a file, or the names that a folder has, to the disk. TensorFlow and `shutil` leave that to the kernel.

    :raises OSError: the disk has not taken it.
    """
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def sync_tree(folder: Path) -> None:
    """Bring a folder with all that is below it to the disk.

    :raises OSError: the disk has not taken it.
    """
    for path in (*folder.rglob("*"), folder):
        sync(path)


def make_folder(path: Path) -> None:
    """Make a folder, where it is absent, with those above it; they have reached the disk when this returns.

    :raises OSError: it cannot be made.
    """
    absent = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for each in absent:
        sync(each.parent)
