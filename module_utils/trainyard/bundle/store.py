"""The content-addressed store of the bundle, one folder per artefact, outside the checkout.

A folder appears whole or not at all: it is built beside the store and renamed into it, with a manifest of the
SHA-256 of every file. A folder whose files do not match its manifest any more is thrown away and built again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

MANIFEST = "artefact.json"
CHUNK = 1 << 20


class Store:
    """Artefacts by name and key below one folder.

    :param root: the cache directory; made when missing.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self.folder = self.root / "artefacts"
        self.work = self.root / "work"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.work.mkdir(parents=True, exist_ok=True)

    def path(self, name: str, key: str) -> Path:
        return self.folder / f"{name}-{key[:16]}"

    def read(self, name: str, key: str) -> dict[str, Any] | None:
        """The manifest of an artefact, or None when it is absent or any of its files is not what it was."""
        path = self.path(name, key)
        try:
            manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if manifest.get("key") != key:
            return None
        for relative, expected in manifest["files"].items():
            if not _matches(path / relative, expected):
                return None
        return manifest

    def add(self, name: str, key: str, build: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
        """Build into a fresh folder, record its hashes, and move it into place.

        :param build: writes the artefact's files below the folder it is given and returns facts for the manifest.
        """
        staging = self.work / f"{name}-{key[:16]}"
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir()
        facts = build(staging)
        manifest = {
            "name": name,
            "key": key,
            **facts,
            "files": {
                str(file.relative_to(staging)): {"sha256": sha256(file), "size": file.stat().st_size}
                for file in sorted(staging.rglob("*"))
                if file.is_file() and not file.is_symlink()
            },
        }
        (staging / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        path = self.path(name, key)
        if path.exists():
            shutil.rmtree(path)
        os.rename(staging, path)
        return manifest


def sha256(path: Path) -> str:
    """SHA-256 of a file as hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _matches(path: Path, expected: dict[str, Any]) -> bool:
    try:
        return path.stat().st_size == expected["size"] and sha256(path) == expected["sha256"]
    except OSError:
        return False
