"""Measure how fast files in a folder are written and read, in a pod of a training or on a host.

    python main.py FOLDER [TIMES]

It writes a file to the disk (of the server, if there is one), and drops it from the kernel's cache. Then it reads the
file like an input pipeline, in large blocks from beginning to end. Each time it prints a line of JSON, in MB a second
(10^6 bytes). Finally it removes the file.
"""

import json
import os
import sys
import time
from pathlib import Path

BLOCK, BLOCKS = 1 << 20, 256


def written(path: Path) -> float:
    """Return the seconds for writing the file completely to the server or disk."""
    block = os.urandom(BLOCK)
    begin = time.monotonic()
    with path.open("wb", buffering=0) as stream:
        for _ in range(BLOCKS):
            stream.write(block)
        os.fsync(stream.fileno())
    return time.monotonic() - begin


def read(path: Path) -> float:
    """Return the seconds for reading it without cached data in this machine's memory.

    :raises OSError: it is shorter than what was written.
    """
    with path.open("rb", buffering=0) as stream:
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        begin = time.monotonic()
        size = sum(len(block) for block in iter(lambda: stream.read(BLOCK), b""))
        seconds = time.monotonic() - begin
    if size != BLOCK * BLOCKS:
        raise OSError(f"{path} has {size} bytes, not {BLOCK * BLOCKS}")
    return seconds


def main(argv: list[str]) -> None:
    path = Path(argv[0]) / f".input-rate-{os.getpid()}"
    try:
        for _ in range(int(argv[1]) if len(argv) > 1 else 1):
            rates = {name: BLOCK * BLOCKS / 1e6 / each(path) for name, each in (("written", written), ("read", read))}
            print(json.dumps({"event": "rate", "time": time.time(), **rates}), flush=True)
    finally:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    main(sys.argv[1:])
