"""Images from vendors' registries into OCI layouts.

https://github.com/opencontainers/distribution-spec/blob/main/spec.md, with the tokens of
https://distribution.github.io/distribution/spec/auth/token/: everything is asked for by digest and checked against it,
from the pinned index or manifest down to the last layer.
"""

from __future__ import annotations

import json
import re
import urllib.parse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...core.errors import TrainyardError
from ..oci import INDEX_TYPES, MANIFEST_TYPE, MANIFEST_TYPES
from ..origin import Image
from . import http as fetch

LAYOUT = "oci"
MANIFEST_LIMIT = 4 << 20
"""Bytes: what the distribution specification asks registries to take."""
PLATFORM = {"os": "linux", "architecture": "amd64"}
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass
class Puller:
    """Fetches images, with one token per repository."""

    _tokens: dict[str, str] = field(default_factory=dict)

    def fetch(self, origin: Image, out: Path, partial: Path) -> dict[str, str]:
        """Pull one image of `PLATFORM` into `out/oci`; facts `reference`, `digest` (of its manifest) and `layout`."""
        layout = out / LAYOUT
        digest, content = self._manifest(origin, origin.digest)
        manifest = json.loads(content)
        media_type = manifest.get("mediaType", MANIFEST_TYPE)
        if media_type in INDEX_TYPES or "manifests" in manifest:
            digest, content = self._manifest(origin, _of_platform(origin, manifest))
            manifest = json.loads(content)
            media_type = manifest.get("mediaType", MANIFEST_TYPE)
        if media_type not in MANIFEST_TYPES or "config" not in manifest:
            raise TrainyardError(f"{origin.name} is a {media_type}, which is not an image.")
        for blob in [manifest["config"], *manifest["layers"]]:
            self._blob(origin, blob["digest"], layout, partial)
        _place(layout, digest).write_bytes(content)
        descriptor = {
            "mediaType": media_type,
            "digest": digest,
            "size": len(content),
            "annotations": {"org.opencontainers.image.ref.name": "image"},
        }
        index = {"schemaVersion": 2, "manifests": [descriptor]}
        (layout / "index.json").write_text(json.dumps(index), encoding="utf-8")
        (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}', encoding="utf-8")
        return {"reference": origin.name, "digest": digest, "layout": LAYOUT}

    def resolve(self, origin: Image) -> str:
        """The digest that the origin's tag has at this moment, from the manifest's own bytes."""
        return f"sha256:{fetch.sha256_bytes(self._get(origin, f'manifests/{origin.tag}'))}"

    def _manifest(self, origin: Image, digest: str) -> tuple[str, bytes]:
        if not _DIGEST.fullmatch(digest):
            raise TrainyardError(f"{origin.name} names the digest {digest}, only sha256 is taken.")
        content = self._get(origin, f"manifests/{digest}")
        found = f"sha256:{fetch.sha256_bytes(content)}"
        if found != digest:
            raise fetch.mismatch(f"The manifest of {origin.endpoint} {origin.name}", digest, found)
        return digest, content

    def _get(self, origin: Image, path: str) -> bytes:
        url = f"{origin.endpoint}/v2/{origin.repository}/{path}"
        headers = {"Accept": ", ".join((*MANIFEST_TYPES, *INDEX_TYPES))}
        token = self._token(origin)
        return fetch.read(url, headers=headers, authorization=token, limit=MANIFEST_LIMIT)

    def _blob(self, origin: Image, digest: str, layout: Path, partial: Path) -> None:
        if not _DIGEST.fullmatch(digest):
            raise TrainyardError(f"{origin.name} names the digest {digest}, only sha256 is taken.")
        place = _place(layout, digest)
        if place.exists():
            return
        url = f"{origin.endpoint}/v2/{origin.repository}/blobs/{digest}"
        expected = digest.removeprefix("sha256:")
        for _ in range(2):
            token = self._token(origin)
            try:
                fetch.download(url, place, expected, partial=partial / expected, authorization=token)
                return
            except fetch.HttpError as error:
                # Tokens live minutes, a large layer may take longer.
                if error.status != 401 or not self._tokens.pop(_scope(origin), ""):
                    raise

    def _token(self, origin: Image) -> str:
        """Value of the Authorization header that the registry wants; empty when it lets anyone read."""
        if _scope(origin) not in self._tokens:
            self._tokens[_scope(origin)] = _authorize(origin)
        return self._tokens[_scope(origin)]


def _scope(origin: Image) -> str:
    return f"{origin.host}/{origin.repository}"


def _authorize(origin: Image) -> str:
    try:
        fetch.request(origin.probe).close()
        return ""
    except fetch.HttpError as error:
        challenge = error.headers.get("WWW-Authenticate", "")
        if error.status != 401 or not challenge.lower().startswith("bearer "):
            raise
    fields = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
    realm = urllib.parse.urlsplit(fields.get("realm", ""))
    if realm.scheme != "https":
        raise TrainyardError(f"The registry {origin.host} sends for a token to {fields.get('realm')}, not to https.")
    query = {"scope": f"repository:{origin.repository}:pull"}
    if "service" in fields:
        query["service"] = fields["service"]
    answer: dict[str, Any] = json.loads(fetch.read(f"{realm.geturl()}?{urllib.parse.urlencode(query)}"))
    token = answer.get("token") or answer.get("access_token")
    if not token:
        raise TrainyardError(f"{realm.geturl()} gave no token for {origin.name}.")
    return f"Bearer {token}"


def _of_platform(origin: Image, index: dict[str, Any]) -> str:
    for entry in index.get("manifests", []):
        platform = entry.get("platform") or {}
        if all(platform.get(key) == value for key, value in PLATFORM.items()):
            return str(entry["digest"])
    raise TrainyardError(f"{origin.name} has no image for {PLATFORM['os']}/{PLATFORM['architecture']}.")


def _place(layout: Path, digest: str) -> Path:
    return layout / "blobs" / digest.replace(":", "/")
