"""Archives of finished artefacts: transferred from the store of the builder to that of a controller."""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from ..core.errors import TrainyardError
from .artefact_store import CHUNK, MANIFEST, Store

AGAIN = "Run again: the builder has the artefact already, and only the archive is fetched again."


def archive_of(folder: Path, name: str) -> Path:
    """Return the path of an artefact's archive in a folder of archives."""
    return folder / f"{name}.tar"


def pack(store: Store, name: str, key: str, folder: Path) -> None:
    """Pack an artefact, manifest first. The archive belongs to the folder's owner, who may lack access to the store.

    :raises TrainyardError: it contains links, which the manifest does not cover, or there is not enough space.
    """
    path, owner, archive = store.path(name, key), folder.stat(), archive_of(folder, name)
    if links := [found.name for found in path.rglob("*") if found.is_symlink()]:
        raise TrainyardError(f"The artefact {name} cannot be packed: it has the link {links[0]}.")
    files = json.loads((path / MANIFEST).read_text(encoding="utf-8"))["files"]
    try:
        archive.unlink(missing_ok=True)
        descriptor = os.open(archive, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as target, tarfile.open(fileobj=target, mode="w") as stream:
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
            for relative in (MANIFEST, *sorted(files)):
                stream.add(path / relative, relative, recursive=False)
    except OSError as error:
        archive.unlink(missing_ok=True)
        raise TrainyardError(
            f"{archive} cannot be written: {error.strerror}.", remedy=f"Free space in {folder.parent} of the builder."
        ) from error


def unpack(folder: Path, name: str, key: str, out: Path) -> dict[str, Any]:
    """Unpack an artefact's archive into a folder: exactly the files of its manifest, with verified hashes.

    :returns: the facts of its manifest.
    :raises TrainyardError: the archive is missing or damaged, or contains another artefact.
    """
    archive = archive_of(folder, name)
    try:
        with tarfile.open(archive, "r:") as stream:
            manifest = _manifest(stream)
            if (manifest["name"], manifest["key"]) != (name, key):
                raise TrainyardError(
                    f"The builder made {manifest['name']} {manifest['key'][:16]}, but {name} {key[:16]} is needed.",
                    remedy="Set bundle_artifact_source to source.",
                )
            missing = dict(manifest["files"])
            while member := stream.next():
                _take(stream, member, missing.pop(member.name), out)
        if missing:
            raise ValueError(f"{min(missing)} is not in it")
    except OSError as error:
        raise TrainyardError(f"{error.filename or archive}: {error.strerror or error}.", remedy=AGAIN) from error
    except (tarfile.TarError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TrainyardError(f"{archive} is damaged: {error}.", remedy=AGAIN) from error
    return {fact: value for fact, value in manifest.items() if fact not in ("name", "key", "files")}


def _manifest(stream: tarfile.TarFile) -> dict[str, Any]:
    first = stream.next()
    content = stream.extractfile(first) if first and first.name == MANIFEST else None
    if content is None:
        raise ValueError("it does not begin with a manifest")
    manifest: dict[str, Any] = json.load(content)
    return manifest


def _take(stream: tarfile.TarFile, member: tarfile.TarInfo, expected: Mapping[str, Any], out: Path) -> None:
    """Write one file. No archive, whatever its origin, can place it outside the folder."""
    name = PurePosixPath(member.name)
    content = stream.extractfile(member) if member.isreg() else None
    if content is None or name.is_absolute() or ".." in name.parts:
        raise ValueError(f"{member.name} is not a file")
    place = out / name
    place.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with place.open("xb") as target:
        while chunk := content.read(CHUNK):
            digest.update(chunk)
            target.write(chunk)
    place.chmod(0o755 if member.mode & 0o100 else 0o644)
    if digest.hexdigest() != expected["sha256"]:
        raise ValueError(f"{member.name} has the SHA-256 {digest.hexdigest()}, but {expected['sha256']} is expected")
