"""What tells a data set from another of the same size, without reading it all."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from lib.errors import InputError

BLOCK_BYTES = 64 * 1024
"""Three blocks of each file are milliseconds also where a thousand files lie on a server. Another set differs in them;
a few bytes that were changed elsewhere in a large file are not seen."""


def digest(files: Iterable[Path]) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of each file's size and its first, middle and last block. Where
    the files lie and what they are called does not count, their order does.

    :raises InputError: one cannot be read.
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
