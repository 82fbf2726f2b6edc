"""The content-addressed store of the bundle, one folder per artefact, outside the checkout.

Folders appear atomically: each is built next to the store and renamed into it, with a manifest of the SHA-256 of its
files. A folder that no longer matches its manifest is removed and built again. Each run checks the bundle, which has
gigabytes, so files are hashed again only if their inodes have changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..core.flock import locked

MANIFEST = "artefact.json"
CHUNK = 1 << 20
LOCK_TIMEOUT = 3600
"""Seconds to wait for another run: a bundle from scratch takes half an hour."""
CLOCK_SECONDS = 2.0
"""Minimum age of a file for its hash to be remembered. Within one tick of the kernel's clock, a later write leaves the
inode's times unchanged; network file systems have whole seconds."""

Inodes = dict[str, list[int]]
"""By relative path: size, modification time and change time in nanoseconds, and inode number."""


class Store:
    """Artefacts by name and key below one folder, which the first write creates.

    :param root: the cache directory.
    :param remembers: record hashed files, so that they are not hashed again while their inodes stay the same.
    """

    def __init__(self, root: str | Path, *, remembers: bool = True) -> None:
        self.root = Path(root)
        self.folder = self.root / "artefacts"
        self.work = self.root / "work"
        self._hashed, self._remembers = self.root / "hashed", remembers

    def path(self, name: str, key: str) -> Path:
        return self.folder / f"{name}-{key[:16]}"

    def has(self, name: str, key: str) -> bool:
        """Return whether an artefact exists, intact or not."""
        return (self.path(name, key) / MANIFEST).exists()

    def read(self, name: str, key: str) -> dict[str, Any] | None:
        """Return the manifest of an artefact, or None if it is absent or its files have changed."""
        path = self.path(name, key)
        manifest = read_manifest(path)
        if manifest is None or manifest.get("key") != key:
            return None
        try:
            inodes = _inodes(path)
            if inodes.keys() - {MANIFEST} != manifest["files"].keys():
                return None
            if self._known(path) == inodes:
                return manifest
            begin = time.time()
            for relative, expected in manifest["files"].items():
                if inodes[relative][0] != expected["size"] or sha256(path / relative) != expected["sha256"]:
                    return None
        except OSError:
            return None
        if self._remembers and begin - max(inode[2] for inode in inodes.values()) / 1e9 > CLOCK_SECONDS:
            self._remember(path, inodes)
        return manifest

    def _known(self, path: Path) -> Inodes:
        """Return an artefact's inodes from when its files were hashed; empty if not recorded."""
        try:
            return dict(json.loads((self._hashed / path.name).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return {}

    def _remember(self, path: Path, inodes: Inodes) -> None:
        with suppress(OSError):  # The store may be read-only.
            self._hashed.mkdir(exist_ok=True)
            # Rename into place, because another run may read it meanwhile.
            part = self._hashed / f"{path.name}.{os.getpid()}"
            part.write_text(json.dumps(inodes), encoding="utf-8")
            part.replace(self._hashed / path.name)

    def remove(self, path: Path) -> None:
        """Remove an artefact's folder."""
        shutil.rmtree(path)
        (self._hashed / path.name).unlink(missing_ok=True)

    def manifests(self, name: str) -> list[dict[str, Any]]:
        """Return the manifests of an artefact under all its keys, newest first."""
        paths = [path for path in self.folder.glob(f"{name}-*") if path.name[len(name) + 1 :].isalnum()]
        found = [read_manifest(path) for path in sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True)]
        return [manifest for manifest in found if manifest and manifest.get("name") == name]

    @contextmanager
    def locked(self, waiting: Callable[[], object]) -> Iterator[None]:
        """Hold the store's build lock; the kernel releases it when the process ends.

        Remains of killed runs are removed first.

        :param waiting: called once if another run holds the lock.
        :raises WaitError: another run held the lock for `LOCK_TIMEOUT`.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        what = f"another run of the bundle to finish with {self.root}"
        with locked(self.root / "lock", what=what, timeout=LOCK_TIMEOUT, waiting=waiting):
            shutil.rmtree(self.work, ignore_errors=True)
            self.work.mkdir(exist_ok=True)
            yield

    def add(self, name: str, key: str, build: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
        """Build into a fresh folder, record its hashes, and move it into place.

        :param build: writes the artefact's files below the given folder, and returns facts for the manifest.
        """
        staging = self.work / f"{name}-{key[:16]}"
        shutil.rmtree(staging, ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        staging.mkdir(parents=True)
        try:
            manifest = {
                "name": name,
                "key": key,
                **build(staging),
                "files": {
                    relative: {"sha256": sha256(staging / relative), "size": (staging / relative).stat().st_size}
                    for relative in sorted(_files(staging))
                },
            }
            (staging / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8")
            path = self.path(name, key)
            if path.exists():
                shutil.rmtree(path)
            os.rename(staging, path)
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            raise
        return manifest


def read_manifest(path: Path) -> dict[str, Any] | None:
    """Return the manifest in an artefact's folder, without checking its files."""
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return manifest if isinstance(manifest, dict) and isinstance(manifest.get("files"), dict) else None


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _files(folder: Path) -> set[str]:
    """Return the relative paths of the files below a folder, without links."""
    return set(_inodes(folder))


def _inodes(folder: Path) -> Inodes:
    """Return the inodes of the files below a folder, without links, which have no content of their own."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            seen = path.stat()
            found[str(path.relative_to(folder))] = [seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino]
    return found
