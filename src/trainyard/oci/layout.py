"""OCI image layouts of one layer: the same files give the same bytes on all machines.

The layer is an uncompressed tar, because compressed bytes, and so the digest, would depend on the machine's zlib
(zlib-ng differs). Formats: github.com/opencontainers/image-spec, image-layout.md, manifest.md, config.md.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import TrainyardError
from .folder import Entry

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
