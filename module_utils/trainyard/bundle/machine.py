"""What the building machine must offer: a Debian archive, a Go toolchain, room on its disk."""

from __future__ import annotations

import glob
import re
import shutil
from pathlib import Path

from ansible.module_utils.trainyard.command import run
from ansible.module_utils.trainyard.errors import TrainyardError

DISK_GIB = 30
"""Room for Go's caches (11 GiB), image layers and the artefacts themselves, all from nothing."""
SOURCES = ("/etc/apt/sources.list", "/etc/apt/sources.list.d/*.list", "/etc/apt/sources.list.d/*.sources")


def debian_mirror() -> str:
    """Base URL of the Debian archive that this machine's own apt sources name.

    :raises TrainyardError: none is there, as on an Ubuntu machine.
    """
    for pattern in SOURCES:
        for path in sorted(glob.glob(pattern)):
            text = Path(path).read_text(encoding="utf-8", errors="replace")
            for url in re.findall(r"^(?:deb\s+(?:\[[^]]*\]\s+)?|URIs:\s*)(\S+)", text, re.MULTILINE):
                if url.rstrip("/").endswith("/debian"):
                    return url
    raise TrainyardError(
        "This machine's apt sources name no Debian archive.", remedy="Set bundle_debian_mirror to the base URL of one."
    )


def check_go(minimum: str) -> None:
    """:raises TrainyardError: Go is missing or older than `minimum` ("1.26")."""
    remedy = f"Install Go {minimum} or newer and put it on the PATH."
    if shutil.which("go") is None:
        raise TrainyardError("Go is not installed.", remedy=remedy)
    version = run(["go", "env", "GOVERSION"], timeout=30).stdout.strip()
    found = re.match(r"go(\d+)\.(\d+)", version)
    if not found or tuple(map(int, found.groups())) < tuple(map(int, minimum.split(".")[:2])):
        raise TrainyardError(f"Go is {version}, the locked versions need {minimum}.", remedy=remedy)


def check_disk(cache: Path) -> None:
    """:raises TrainyardError: the cache's file system has too little room for a build from nothing."""
    free = shutil.disk_usage(cache).free / 2**30
    if free < DISK_GIB:
        raise TrainyardError(
            f"{cache} has {free:.0f} GiB free, a bundle from nothing needs {DISK_GIB}.",
            remedy="Free some room, or set bundle_cache_dir to a larger file system.",
        )
