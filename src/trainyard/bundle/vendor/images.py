"""Images from vendors' registries into OCI layouts, by skopeo.

It checks every digest from the pinned index or manifest down to the last layer. Its `dir:` format keeps each byte; its
`oci:` would rewrite manifests of Docker's type, which then have another digest than the pinned one.
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
    """Pull one image of `PLATFORM` into `out/oci`; facts `reference`, `digest` (of its manifest) and `layout`.

    :param partial: folder for what is under way, on the file system of `out`.
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
        absent = "See whether its vendor still publishes it (`pin` in check mode asks); bundle_artifact_source=source "
        raise TrainyardError(
            f"{origin.name} ({pinned}) cannot be fetched: {error.message}",
            remedy=ALTERED if "not match" in error.message else error.remedy or f"{absent}makes it here.",
        ) from error
    content = (pulled / "manifest.json").read_bytes()
    _lay_out(origin, content, pulled, layout)
    shutil.rmtree(pulled)
    return {"reference": origin.name, "digest": _digest(content), "layout": LAYOUT}


def resolve(origin: Image) -> str:
    """The digest that the origin's tag has at this moment."""
    found = digest_of_tag(origin.endpoint, origin.name)
    if found is None:
        raise TrainyardError(f"The registry {origin.endpoint} has no {origin.name}.")
    return found


def _lay_out(origin: Image, content: bytes, pulled: Path, layout: Path) -> None:
    """Give a folder of the `dir:` format the names of an OCI layout; manifest and blobs stay as they are."""
    manifest = json.loads(content)
    if "config" not in manifest:
        raise TrainyardError(f"{origin.name} is a {manifest.get('mediaType')}, which is not an image.")
    blobs = layout / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    for digest in {blob["digest"] for blob in (manifest["config"], *manifest["layers"])}:
        if not _DIGEST.fullmatch(digest):
            raise TrainyardError(f"{origin.name} names the digest {digest}, only sha256 is taken.")
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
