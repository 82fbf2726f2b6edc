"""OCI image layouts of one layer, and the store of code layouts on the controller.

The same files give the same bytes on all machines. The layer is an uncompressed tar. Compressed bytes, and so the
digest, would depend on the machine's zlib (zlib-ng differs). Formats: github.com/opencontainers/image-spec,
image-layout.md, manifest.md, config.md.

The store has one folder per digest, and keeps only the newest ones.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tarfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..core.errors import TrainyardError
from ..core.flock import locked
from ..core.plan import Plan, Step
from .code_folder import Entry

TYPE = "application/vnd.oci.image"
ARCHITECTURE = "amd64"
"""Architecture of the nodes; containerd unpacks no image of another one, even if it contains no binaries."""


@dataclass(frozen=True)
class Layout:
    """An image in a layout.

    :param digest: digest of its manifest, "sha256:...".
    :param files: path in the layout -> content.
    """

    digest: str
    files: Mapping[str, bytes]

    def write(self, folder: Path) -> None:
        """Write the layout's files below a folder, which is created."""
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def is_at(self, folder: Path) -> bool:
        """Return whether a folder contains exactly the bytes of this layout."""
        try:
            return all((folder / name).read_bytes() == content for name, content in self.files.items())
        except OSError:
            return False


def pack(folder: Path, entries: Iterable[Entry]) -> Layout:
    """Pack the entries found by `folder.read` as an image.

    :raises TrainyardError: a file has disappeared or become unreadable.
    """
    layer = tar(folder, entries)
    config = {
        "architecture": ARCHITECTURE,
        "os": "linux",
        "config": {},
        "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
    }
    configuration = _json(config)
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{TYPE}.manifest.v1+json",
        "config": _descriptor(f"{TYPE}.config.v1+json", configuration),
        "layers": [_descriptor(f"{TYPE}.layer.v1.tar", layer)],
    }
    content = _json(manifest)
    index = {"schemaVersion": 2, "manifests": [_descriptor(f"{TYPE}.manifest.v1+json", content)]}
    blobs = {f"blobs/{_digest(blob).replace(':', '/')}": blob for blob in (layer, configuration, content)}
    fixed = {"index.json": _json(index), "oci-layout": _json({"imageLayoutVersion": "1.0.0"})}
    return Layout(_digest(content), {**blobs, **fixed})


def tar(folder: Path, entries: Iterable[Entry]) -> bytes:
    """Return a tar with owner root and times of 1970, in the given order, so that equal files give equal bytes.

    :raises TrainyardError: a file has disappeared or become unreadable.
    """
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as stream:
        for entry in entries:
            member = tarfile.TarInfo(entry.name)
            content = b""
            if entry.is_folder:
                member.type, member.mode = tarfile.DIRTYPE, 0o755
            elif entry.target:
                member.type, member.mode, member.linkname = tarfile.SYMTYPE, 0o777, entry.target
            else:
                member.mode = 0o755 if entry.mode & 0o100 else 0o644
                content = _content(folder / entry.name)
                member.size = len(content)
            stream.addfile(member, io.BytesIO(content))
    return target.getvalue()


def files_in(folder: Path) -> int:
    """Return the number of files in the layer of a layout made by `pack`; 0 for anything else."""
    try:
        index = json.loads((folder / "index.json").read_bytes())
        manifest = json.loads(_blob(folder, index["manifests"][0]["digest"]).read_bytes())
        with tarfile.open(_blob(folder, manifest["layers"][0]["digest"]), "r:") as stream:
            return sum(member.isfile() for member in stream)
    except (OSError, ValueError, LookupError, TypeError, tarfile.TarError):
        return 0


def _blob(folder: Path, digest: str) -> Path:
    return folder / "blobs" / digest.replace(":", "/")


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TrainyardError(f"{path} cannot be read: {error.strerror}.") from error


def _descriptor(kind: str, content: bytes) -> dict[str, object]:
    return {"mediaType": kind, "digest": _digest(content), "size": len(content)}


def _json(document: object) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


DAY = 86400
"""Minimum seconds for which a layout is kept, because another run may be pushing it."""
LOCK_TIMEOUT = 120
"""Seconds to wait for another run, which writes at most 64 MiB."""


def path_of(shelf: Path, layout: Layout) -> Path:
    """Return the folder of a layout, without the algorithm's name: skopeo treats text after a colon as a tag."""
    return shelf / layout.digest.partition(":")[2]


def make_plan(shelf: Path, layout: Layout, files: int, keep: int) -> Plan:
    """Plan to store a layout as the newest one.

    :param files: number of its files, for the diff.
    :param keep: number of layouts to keep, in addition to those of the last day.
    """
    newest = next(iter(_by_age(shelf)), None)
    place = path_of(shelf, layout)
    there = layout.is_at(place)
    what = f"Use {layout.digest} again" if there else f"Pack {files} files as {layout.digest}"
    steps = [] if there and newest == place else [Step(what, partial(_put, shelf, layout, keep))]
    before: dict[str, Any] = {"digest": f"sha256:{newest.name}", "files": files_in(newest)} if newest else {}
    return Plan(steps, before, {"digest": layout.digest, "files": files})


def _put(shelf: Path, layout: Layout, keep: int) -> None:
    """Store a layout and remove old ones.

    A reader, or the next run after a power cut, finds a complete layout or none: `is_at` rejects damaged ones.
    """
    place = path_of(shelf, layout)
    try:
        shelf.mkdir(parents=True, exist_ok=True)
        with locked(shelf / ".lock", what=f"another run to finish with {shelf}", timeout=LOCK_TIMEOUT):
            if layout.is_at(place):
                os.utime(place)
            else:
                # Remains of a killed run; a live run would hold the lock.
                new = shelf / ".new"
                shutil.rmtree(new, ignore_errors=True)
                layout.write(new)
                shutil.rmtree(place, ignore_errors=True)
                new.rename(place)
            for path in _by_age(shelf)[keep:]:
                if path != place and path.stat().st_mtime < time.time() - DAY:
                    shutil.rmtree(path)
    except OSError as error:
        raise TrainyardError(
            f"The image of the code cannot be kept in {shelf}: {error.strerror}.",
            remedy="Free space there, or set another folder that this user may write.",
        ) from error


def _by_age(shelf: Path) -> list[Path]:
    """Return the folders of layouts, most recently used first."""
    found = [path for path in shelf.glob("[0-9a-f]" * 64) if path.is_dir()]
    return sorted(found, key=lambda path: path.stat().st_mtime_ns, reverse=True)
