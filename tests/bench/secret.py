"""Search for a value that must be nowhere: in files, including compressed ones and archives, and in processes.

The search covers the plain value and its common encodings: JSON, URLs, base64 at any alignment, hexadecimal.
"""

from __future__ import annotations

import base64
import io
import json
import re
import secrets
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from stand import Stand
from timed import BenchError

SHORTEST = 12
"""Minimum length of a searched value: a shorter one may occur by chance."""
KEY_LINE = 40
"""Length from which a line of a private key is unique."""
PROCESSES = """
import os, sys
for pid in filter(str.isdigit, os.listdir("/proc")):
    if int(pid) == os.getpid():
        continue
    for name in ("cmdline", "environ"):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as stream:
                text = stream.read()
        except OSError:
            continue
        sys.stdout.buffer.write(b"%s of process %s: %s\\n" % (name.encode(), pid.encode(), text.replace(b"\\0", b" ")))
"""
"""Prints arguments and environment of every process of a node, a line each."""


def new() -> str:
    """Return a unique value, which is also valid as a host name."""
    return f"canary{secrets.token_hex(12)}"


def key_lines(key: str) -> list[str]:
    """Return the lines of a private key that identify it; the first ones only state its kind."""
    lines = [line for line in key.splitlines() if len(line) >= KEY_LINE and not line.startswith("-----")]
    return lines[1:] or lines


def forms(value: str) -> set[bytes]:
    """Return the encodings of a value.

    :raises ValueError: it is so short that it may occur by chance.
    """
    if len(value) < SHORTEST:
        raise ValueError(f"a value of {len(value)} characters may occur by chance")
    data = value.encode()
    found = {data, json.dumps(value)[1:-1].encode(), quote(value, safe="").encode(), data.hex().encode()}
    for before in range(3):
        # The base64 characters that do not depend on neighbouring text.
        code = base64.b64encode(b"\0" * before + data)
        found.add(code[-(-before * 8 // 6) : (before + len(data)) * 8 // 6])
    return found


def inside(data: bytes) -> Iterator[bytes]:
    """Yield a file's bytes, and its decompressed content."""
    yield data
    if data.startswith(b"\x1f\x8b"):
        # A killed run may have left an incomplete file; decompress as much as possible.
        with suppress(zlib.error):
            yield zlib.decompressobj(31).decompress(data)


def search(files: Iterable[tuple[str, bytes]], values: Sequence[str]) -> list[str]:
    """Return the names of the files in which one of the values is; names are searched, too. Never return the value."""
    wanted = re.compile(b"|".join(re.escape(form) for value in values for form in sorted(forms(value))), re.IGNORECASE)

    def has_one(name: str, data: bytes) -> bool:
        return any(wanted.search(each) for each in (name.encode(), *inside(data)))

    return [name for name, data in files if has_one(name, data)]


def of_folder(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield all files below a folder of this machine."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield str(path), path.read_bytes()


def of_archive(archive: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield all files of a tar archive."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isfile() else None
            yield member.name, content.read() if content else b""


def of_node(stand: Stand, node: str, folders: Sequence[str], without: Sequence[str] = ()) -> list[tuple[str, bytes]]:
    """Return files of a node, and its journal. Missing folders are left out.

    :param without: tar patterns for places where the value belongs.
    :raises BenchError: nothing can be read; a search in nothing would find nothing.
    """
    there = [folder for folder in folders if stand.on_node(node, "sh", "-c", f"test -e {folder} && echo yes || true")]
    options = [f"--exclude={pattern}" for pattern in without]
    packed = stand.bytes_of(node, "tar", "-C", "/", "-c", "--ignore-failed-read", *options, *there)
    journal = stand.bytes_of(node, "journalctl", "--no-pager", "--output=export")
    found = [(f"{node}:{name}", data) for name, data in of_archive(packed)]
    if not found or not journal:
        raise BenchError(f"There is nothing on {node} to search.")
    return [*found, (f"{node}: its journal", journal)]


def of_processes(stand: Stand, node: str) -> list[tuple[str, bytes]]:
    """Return arguments and environment of the current processes of a node."""
    return [(f"{node}: processes", stand.bytes_of(node, "python3", "-", given=PROCESSES))]


def require_nowhere(files: Mapping[str, bytes] | Iterable[tuple[str, bytes]], values: Sequence[str]) -> int:
    """Check that no file has one of the values; return the number of searched files.

    :raises BenchError: one of the values is in one of them.
    """
    listed = list(files.items() if isinstance(files, Mapping) else files)
    if found := search(listed, values):
        raise BenchError(f"A secret is in {', '.join(found)}.")
    return len(listed)
