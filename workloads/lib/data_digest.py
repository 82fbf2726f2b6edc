"""A digest that distinguishes data sets of equal size without reading them completely."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from lib.errors import InputError

BLOCK_BYTES = 64 * 1024
"""Size of a block. Reading three blocks per file takes milliseconds, even for a thousand files on a server. Different
data sets differ in these blocks; a few changed bytes elsewhere in a large file go unnoticed."""


def digest(files: Iterable[Path]) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of each file's size and its first, middle and last block.

    The names and locations of the files do not count; their order does.

    :raises InputError: a file cannot be read.
    """
    found = hashlib.sha256()
    for file in files:
        try:
            with file.open("rb") as stream:
                size = stream.seek(0, os.SEEK_END)
                found.update(size.to_bytes(8, "big"))
                last = max(0, size - BLOCK_BYTES)
                for begin in (0, last // 2, last):
                    stream.seek(begin)
                    found.update(stream.read(BLOCK_BYTES))
        except OSError as error:
            raise InputError(f"{file} cannot be read ({error.strerror}).", "Mount the whole data set.") from error
    return found.hexdigest()[:16]
