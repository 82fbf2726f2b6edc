"""Pushing OCI layouts to a registry by the distribution protocol.

https://github.com/opencontainers/distribution-spec/blob/main/spec.md: a manifest is put under a tag after every blob
that it names; what the registry already has is not sent again.
"""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.parse
from dataclasses import dataclass
from email.message import Message
from functools import cached_property
from pathlib import Path
from typing import Any

from ..core.errors import TrainyardError

TIMEOUT = 60
"""Seconds that one request may be without an answer."""
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
MANIFEST_TYPES = (MANIFEST_TYPE, "application/vnd.docker.distribution.manifest.v2+json")
INDEX_TYPES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)


@dataclass(frozen=True)
class Image:
    """An image in a layout and the name that it gets in the registry.

    :param repository: path below the registry's host, e.g. "registry.k8s.io/kube-proxy".
    :param digest: of its manifest, "sha256:...".
    """

    repository: str
    tag: str
    layout: Path
    digest: str

    def blob(self, digest: str) -> Path:
        return self.layout / "blobs" / digest.replace(":", "/")


def image(reference: str, layout: str | Path, digest: str) -> Image:
    """Split "repository:tag"."""
    repository, _, tag = reference.rpartition(":")
    return Image(repository, tag, Path(layout), digest)


class Registry:
    """A registry over HTTPS.

    :param url: "https://host:port".
    :param ca_file: the certificate authority that signed its certificate, or None for the system's.
    """

    def __init__(self, url: str, ca_file: str | None = None) -> None:
        parsed = urllib.parse.urlsplit(url)
        if parsed.scheme != "https" or not parsed.hostname:
            raise TrainyardError(f"{url} is not the https:// address of a registry.")
        self.url = url
        self._host, self._port = parsed.hostname, parsed.port or 443
        self._ca_file = ca_file

    @cached_property
    def _context(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cafile=self._ca_file)
        except OSError as error:
            raise TrainyardError(f"The certificate authority {self._ca_file} cannot be read: {error}.") from error

    def digest(self, repository: str, tag: str) -> str | None:
        """Digest of a tag's manifest, or None when the registry does not have it."""
        headers = {"Accept": ", ".join((*MANIFEST_TYPES, *INDEX_TYPES))}
        status, answer, _ = self._request("HEAD", f"/v2/{repository}/manifests/{tag}", headers=headers, ok=(200, 404))
        return answer.get("Docker-Content-Digest") if status == 200 else None

    def push(self, pushed: Image) -> None:
        """Send an image's blobs and then its manifest.

        :raises TrainyardError: the registry refuses, or does not answer in time.
        """
        try:
            manifest_bytes = pushed.blob(pushed.digest).read_bytes()
        except OSError as error:
            raise TrainyardError(
                f"The layout {pushed.layout} of {pushed.repository}:{pushed.tag} lacks {pushed.digest}.",
                remedy="Run the bundle role again: it notices what is damaged and makes it anew.",
            ) from error
        manifest: dict[str, Any] = json.loads(manifest_bytes)
        # An OCI manifest may leave its type out, Docker's never does.
        media_type = manifest.get("mediaType", MANIFEST_TYPE)
        for blob in [manifest["config"], *manifest["layers"]]:
            self._push_blob(pushed, blob["digest"])
        path = f"/v2/{pushed.repository}/manifests/{pushed.tag}"
        self._request("PUT", path, body=manifest_bytes, headers={"Content-Type": media_type}, ok=(201,))

    def _push_blob(self, pushed: Image, digest: str) -> None:
        path = f"/v2/{pushed.repository}/blobs/{digest}"
        status, _, _ = self._request("HEAD", path, ok=(200, 404))
        if status == 200:
            return
        _, answer, _ = self._request("POST", f"/v2/{pushed.repository}/blobs/uploads/", ok=(202,))
        location = urllib.parse.urlsplit(answer["Location"])
        query = f"{location.query}&" if location.query else ""
        target = f"{location.path}?{query}digest={urllib.parse.quote(digest)}"
        file = pushed.blob(digest)
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(file.stat().st_size)}
        with file.open("rb") as stream:
            self._request("PUT", target, body=stream, headers=headers, ok=(201,))

    def _request(
        self, method: str, path: str, *, body: Any = None, headers: dict[str, str] | None = None, ok: tuple[int, ...]
    ) -> tuple[int, Message, bytes]:
        connection = http.client.HTTPSConnection(self._host, self._port, timeout=TIMEOUT, context=self._context)
        connection.blocksize = 1 << 20
        try:
            connection.request(method, path, body=body, headers=headers or {})
            response = connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise TrainyardError(
                f"The registry {self.url} does not answer: {error}.",
                remedy="See whether it runs and whether the address is right.",
            ) from error
        finally:
            connection.close()
        if response.status not in ok:
            text = content.decode(errors="replace")[:300]
            raise TrainyardError(f"The registry {self.url} answered {response.status} to {method} {path}: {text}")
        return response.status, response.headers, content
