"""How fast a folder's files are written and read: in a pod of a training, or on a host, which it does not tell apart.

    python main.py FOLDER [TIMES]

Writes a file until it is on the disk (of a server, where it has one), has the kernel forget it, and reads it as an
input pipeline does, in large blocks from its begin to its end. Each time says so in a line of JSON, in MB a second
(10^6 bytes), and removes the file in the end.
"""

import json
import os
import sys
import time
from pathlib import Path

BLOCK, BLOCKS = 1 << 20, 256


def written(path: Path) -> float:
    """Seconds for writing the file, until its server or disk has all of it."""
    block = os.urandom(BLOCK)
    begin = time.monotonic()
    with path.open("wb", buffering=0) as stream:
        for _ in range(BLOCKS):
            stream.write(block)
        os.fsync(stream.fileno())
    return time.monotonic() - begin


def read(path: Path) -> float:
    """Seconds for reading it, with nothing of it in this machine's memory.

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
