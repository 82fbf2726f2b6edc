"""Pull images from vendors' registries into OCI layouts with skopeo.

skopeo verifies all digests, from the pinned index or manifest to the last layer. Its `dir:` format keeps all bytes. Its
`oci:` format would rewrite manifests of Docker's type, which would change their digest.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path

from ...core.errors import TrainyardError
from ..origin import Image
from ..skopeo import digest_of_tag, skopeo
from .http import ALTERED

LAYOUT = "oci"
PULL_TIMEOUT = 1800
"""Seconds for one image: 1 GB over 5 Mbit/s."""
PLATFORM = ("--override-os=linux", "--override-arch=amd64")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def fetch(origin: Image, out: Path, partial: Path) -> dict[str, str]:
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
