"""Packages of npm that tests of the pages need, in a cache outside of the checkout."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import tarfile
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trainyard" / "tests"
SECONDS = 120
PACKAGES = {
    "uplot": ("1.6.32", "KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw=="),
    "axe-core": ("4.14.1", "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="),
}
"""Name -> version, and SHA-512 of the archive as npm has it (`npm view NAME@VERSION dist.integrity`)."""


def package(name: str) -> Path:
    """The unpacked package, which is fetched once.

    :raises AssertionError: the archive is another one than that of the hash.
    """
    version, wanted = PACKAGES[name]
    folder = CACHE / f"{name}-{version}"
    if folder.is_dir():
        return folder
    CACHE.mkdir(parents=True, exist_ok=True)
    command = ["npm", "pack", "--silent", f"{name}@{version}"]
    packed = subprocess.run(command, cwd=CACHE, capture_output=True, text=True, check=True, timeout=SECONDS)
    archive = CACHE / packed.stdout.split()[-1]
    found = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    assert found == wanted, f"{archive} has the hash {found}"
    unpacked = CACHE / f".{name}-{os.getpid()}"
    with tarfile.open(archive) as stream:
        stream.extractall(unpacked, filter="data")
    (unpacked / "package").rename(folder)
    archive.unlink()
    unpacked.rmdir()
    return folder
