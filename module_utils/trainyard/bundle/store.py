"""The content-addressed store of the bundle, one folder per artefact, outside the checkout.

A folder appears whole or not at all: it is built beside the store and renamed into it, with a manifest of the
SHA-256 of every file. A folder whose files do not match its manifest any more is thrown away and built again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..core.lock import locked

MANIFEST = "artefact.json"
CHUNK = 1 << 20
LOCK_TIMEOUT = 3600
"""Seconds to wait for another run: a bundle from nothing takes half an hour."""


class Store:
    """Artefacts by name and key below one folder, which the first write makes.

    :param root: the cache directory.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self.folder = self.root / "artefacts"
        self.work = self.root / "work"

    def path(self, name: str, key: str) -> Path:
        return self.folder / f"{name}-{key[:16]}"

    def has(self, name: str, key: str) -> bool:
        """Whether an artefact was made, intact or not."""
        return (self.path(name, key) / MANIFEST).exists()

    def read(self, name: str, key: str) -> dict[str, Any] | None:
        """The manifest of an artefact, or None when it is absent or its files are not what they were."""
        path = self.path(name, key)
        manifest = read_manifest(path)
        if manifest is None or manifest.get("key") != key:
            return None
        if _files(path) - {MANIFEST} != set(manifest["files"]):
            return None
        for relative, expected in manifest["files"].items():
            if not _matches(path / relative, expected):
                return None
        return manifest

    def manifests(self, name: str) -> list[dict[str, Any]]:
        """The manifests of an artefact under all its keys, newest first."""
        paths = [path for path in self.folder.glob(f"{name}-*") if path.name[len(name) + 1 :].isalnum()]
        found = [read_manifest(path) for path in sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True)]
        return [manifest for manifest in found if manifest and manifest.get("name") == name]

    @contextmanager
    def locked(self, waiting: Callable[[], object]) -> Iterator[None]:
        """Keep other runs from building into the same store; the kernel ends the lock with the process.

        What a killed run left half made goes first.

        :param waiting: called once when another run holds the lock.
        :raises WaitError: it held the lock for `LOCK_TIMEOUT`.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        what = f"another run of the bundle to finish with {self.root}"
        with locked(self.root / "lock", what=what, timeout=LOCK_TIMEOUT, waiting=waiting):
            shutil.rmtree(self.work, ignore_errors=True)
            self.work.mkdir(exist_ok=True)
            yield

    def add(self, name: str, key: str, build: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
        """Build into a fresh folder, record its hashes, and move it into place.

        :param build: writes the artefact's files below the folder it is given and returns facts for the manifest.
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
    """The manifest in an artefact's folder, whatever state its files are in."""
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return manifest if isinstance(manifest, dict) and isinstance(manifest.get("files"), dict) else None


def sha256(path: Path) -> str:
    """SHA-256 of a file as hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _files(folder: Path) -> set[str]:
    """Relative paths of the files below a folder; links have no content of their own."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and not path.is_symlink()}


def _matches(path: Path, expected: dict[str, Any]) -> bool:
    try:
        return path.stat().st_size == expected["size"] and sha256(path) == expected["sha256"]
    except OSError:
        return False
