"""Fetch artefacts from their vendors, with the same files and facts that the builders produce.

Parts: images; all artefacts. skopeo pulls images from vendors' registries into OCI layouts. It verifies all digests,
from the pinned index or manifest to the last layer. Its `dir:` format keeps all bytes. Its `oci:` format would rewrite
manifests of Docker's type, which would change their digest.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tarfile
from pathlib import Path
from typing import Any

from ...core.errors import TrainyardError
from ..lockfile import Artefact
from ..origin import Apt, Download, Image
from ..registry import digest_of_tag, skopeo
from . import http as fetch
from .http import ALTERED
from .vendor_apt import Archive

LAYOUT = "oci"
PULL_TIMEOUT = 1800
"""Seconds for one image: 1 GB over 5 Mbit/s."""
PLATFORM = ("--override-os=linux", "--override-arch=amd64")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def fetch_image(origin: Image, out: Path, partial: Path) -> dict[str, str]:
    """Pull one image of `PLATFORM` into `out/oci`; return `reference`, `digest` (of its manifest) and `layout`.

    :param partial: folder for temporary files, on the file system of `out`.
    """
    pulled, layout = partial / "image", out / LAYOUT
    shutil.rmtree(pulled, ignore_errors=True)
    partial.mkdir(parents=True, exist_ok=True)
    pinned = f"{origin.host}/{origin.repository}@{origin.digest}"
    options = ["--quiet", "--preserve-digests", "--retry-times=2"]
    try:
        skopeo(
            origin.endpoint,
            *PLATFORM,
            "copy",
            *options,
            f"docker://{pinned}",
            f"dir:{pulled}",
            timeout=PULL_TIMEOUT,
        )
    except TrainyardError as error:
        absent = "Run `pin` in check mode to see whether its vendor still publishes it, or set bundle_artifact_source "
        raise TrainyardError(
            f"{origin.name} ({pinned}) cannot be fetched: {error.message}",
            remedy=ALTERED if "not match" in error.message else error.remedy or f"{absent}to source.",
        ) from error
    content = (pulled / "manifest.json").read_bytes()
    _lay_out(origin, content, pulled, layout)
    shutil.rmtree(pulled)
    return {"reference": origin.name, "digest": _digest(content), "layout": LAYOUT}


def resolve(origin: Image) -> str:
    """Return the current digest of the origin's tag."""
    found = digest_of_tag(origin.endpoint, origin.name)
    if found is None:
        raise TrainyardError(f"The registry {origin.endpoint} has no {origin.name}.")
    return found


def _lay_out(origin: Image, content: bytes, pulled: Path, layout: Path) -> None:
    """Convert a folder of the `dir:` format to an OCI layout by renaming; manifest and blobs stay unchanged."""
    manifest = json.loads(content)
    if "config" not in manifest:
        raise TrainyardError(f"{origin.name} is a {manifest.get('mediaType')}, which is not an image.")
    blobs = layout / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    for digest in {blob["digest"] for blob in (manifest["config"], *manifest["layers"])}:
        if not _DIGEST.fullmatch(digest):
            raise TrainyardError(f"{origin.name} contains the digest {digest}, but only sha256 is accepted.")
        name = digest.removeprefix("sha256:")
        (pulled / name).rename(blobs / name)
    (pulled / "manifest.json").rename(blobs / _digest(content).removeprefix("sha256:"))
    descriptor = {
        "mediaType": manifest.get("mediaType", "application/vnd.oci.image.manifest.v1+json"),
        "digest": _digest(content),
        "size": len(content),
        "annotations": {"org.opencontainers.image.ref.name": "image"},
    }
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [descriptor]}), encoding="utf-8")
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}', encoding="utf-8")


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


class Upstream:
    """A client of all vendors, which caches the index between artefacts of the same vendor.

    :param project: the repository's root.
    :param cache: the bundle's folder; unfinished downloads stay there and are resumed.
    """

    def __init__(self, project: Path, cache: Path) -> None:
        self._downloads = cache / "downloads"
        self._archive = Archive(project)

    def fetch(self, artefact: Artefact, out: Path) -> dict[str, Any]:
        """Fetch the files that a builder of the artefact's kind would produce, and return its facts.

        :raises TrainyardError: no answer, or the bytes do not match the pin.
        """
        # One folder per artefact, because two artefacts that are fetched concurrently may share a layer.
        partial = self._downloads / artefact.name
        origin = artefact.origin
        facts: dict[str, Any] = {}
        if isinstance(origin, Apt):
            facts = self._archive.fetch(origin, out, partial)
        elif isinstance(origin, Image):
            facts = fetch_image(origin, out, partial)
            # A site may keep a vendor's image under a name of its own.
            facts["reference"] = artefact.recipe["reference"].format(version=artefact.version)
        elif origin is not None:
            for item in origin.items:
                download(item, out, partial)
            for file in out.rglob("*") if artefact.kind == "go_programs" else []:
                file.chmod(0o755)
        shutil.rmtree(partial, ignore_errors=True)
        return facts


def download(item: Download, out: Path, partial: Path) -> None:
    """Fetch a file, or the listed members of a tar archive."""
    if len(item.files) == 1 and not item.files[0][1]:
        fetch.download(item.url, out / item.files[0][0], item.sha256, partial=partial / item.sha256)
        return
    archive = partial / "archive.tar"
    fetch.download(item.url, archive, item.sha256, partial=partial / item.sha256)
    with tarfile.open(archive) as stream:
        for destination, path in item.files:
            member = _member(stream, path)
            if member is None:
                raise TrainyardError(f"{item.url} has no file {path}.")
            place = out / destination
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("wb") as target:
                shutil.copyfileobj(member, target)


def _member(stream: tarfile.TarFile, path: str) -> Any:
    """Return a file of an archive; vendors write paths with and without a leading "./"."""
    for name in (path, f"./{path}"):
        try:
            return stream.extractfile(name)
        except KeyError:
            continue
    return None
