"""Check whether apt's index matches the current sources, and parse apt's simulations."""

from __future__ import annotations

import glob
import os

from ..core.files import digest_of
from .patterns import matches

SOURCES = ("/etc/apt/sources.list", "/etc/apt/sources.list.d/*.list", "/etc/apt/sources.list.d/*.sources")
STAMP = "/var/cache/trainyard/apt_index.sha256"


def source_files() -> list[str]:
    """Return the files from which apt reads its sources, without broken links and folders."""
    return [path for path in matches(SOURCES) if os.path.isfile(path)]


def digest_of_sources() -> str:
    """Return a digest of all current apt sources."""
    texts = {}
    for path in source_files():
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            texts[path] = stream.read()
    return digest_of(texts)


def index_is_current() -> bool:
    """Return whether the index exists and was completely read since the last change of the sources."""
    if not os.path.exists(STAMP) or not glob.glob("/var/lib/apt/lists/*Release"):
        return False
    with open(STAMP, encoding="utf-8") as stream:
        return stream.read() == digest_of_sources()


def removals(simulation: str) -> list[str]:
    """Return the packages that a simulated run of apt-get would remove."""
    words = (line.split() for line in simulation.split("\n") if line.startswith(("Remv ", "Purg ")))
    return [found[1] for found in words if len(found) > 1]
