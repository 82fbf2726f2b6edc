"""Vendors' publications of finished artefacts: the `upstream` of a lock entry.

An origin is pinned by a hash or by its signing key, and each address contains its version. So neither an unpinned
download nor an outdated pin can be written. The word `unpinned` instead of a hash marks an origin whose hash is not
known yet; such an origin is never downloaded.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..core.errors import TrainyardError

UNPINNED = "unpinned"
KINDS = ("apt", "image", "downloads")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_FINGERPRINT = re.compile(r"[0-9A-F]{40}|[0-9A-F]{64}")
_IMAGE = re.compile(r"(?P<host>[a-z0-9.-]+(?::\d+)?)/(?P<repository>[a-z0-9._/-]+):(?P<tag>[\w.-]+)@(?P<pin>\S+)")


@dataclass(frozen=True)
class Apt:
    """A package in a signed apt repository.

    :param base: URL of the repository.
    :param suite: "/" for a flat repository, otherwise a name below `dists/`.
    :param component: component of a repository with `dists/`; empty for a flat one.
    :param key: URL of the armored or binary key, or a `project:` reference to it.
    :param signed_by: fingerprint of the only accepted signing key, which authenticates the hash in the index.
    :param sha256: hash of the package; empty to rely on the signed index only.
    """

    base: str
    suite: str
    component: str
    package: str
    version: str
    key: str
    signed_by: str
    sha256: str
    pinned = True

    @property
    def release(self) -> str:
        """Return the URL of the folder of the signed index."""
        return self.base if self.suite == "/" else f"{self.base}dists/{self.suite}/"

    @property
    def probe(self) -> str:
        return f"{self.release}Release"


@dataclass(frozen=True)
class Image:
    """An image in a registry.

    :param digest: digest of the manifest, or of the multi-platform index, "sha256:..."; empty if unpinned.
    """

    host: str
    repository: str
    tag: str
    digest: str

    @property
    def pinned(self) -> bool:
        return bool(self.digest)

    @property
    def name(self) -> str:
        return f"{self.host}/{self.repository}:{self.tag}"

    @property
    def endpoint(self) -> str:
        """Return the URL of the registry; that of Docker Hub differs from the host name in its images."""
        return f"https://{'registry-1.docker.io' if self.host == 'docker.io' else self.host}"

    @property
    def probe(self) -> str:
        return f"{self.endpoint}/v2/"


@dataclass(frozen=True)
class Download:
    """A file, or an archive from which files are extracted.

    :param sha256: hash of the download; empty if unpinned.
    :param files: destination below the artefact's folder -> path in the archive, or empty for the file itself.
    """

    url: str
    sha256: str
    files: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Downloads:
    items: tuple[Download, ...]

    @property
    def pinned(self) -> bool:
        return all(item.sha256 for item in self.items)

    @property
    def probe(self) -> str:
        return self.items[0].url


Origin = Apt | Image | Downloads


def parse(name: str, version: str, recipe: Mapping[str, Any], upstream: Any) -> Origin | None:
    """Parse the `upstream` of an entry; None if it has none.

    :param version: version of the entry; `upstream.version` overrides it if the vendor's differs.
    :raises TrainyardError: a hash or key is missing, or an address is not https or does not contain the version.
    """
    if not upstream:
        return None
    kinds = [kind for kind in KINDS if kind in upstream] if isinstance(upstream, Mapping) else []
    if len(kinds) != 1:
        raise _refusal(name, f"it needs one of {', '.join(KINDS)}")
    theirs = str(upstream.get("version", version))
    if kinds[0] == "apt":
        return _apt(name, version, theirs, recipe, upstream)
    if kinds[0] == "image":
        return _image(name, version, recipe, str(upstream["image"]))
    return Downloads(tuple(_download(name, theirs, item) for item in upstream["downloads"]))


def _apt(name: str, version: str, theirs: str, recipe: Mapping[str, Any], upstream: Mapping[str, Any]) -> Apt:
    for key in ("key", "signed_by"):
        if not upstream.get(key):
            raise _refusal(name, f"it has no {key}, so the package cannot be authenticated")
    fingerprint = str(upstream["signed_by"]).replace(" ", "").upper()
    if not _FINGERPRINT.fullmatch(fingerprint):
        raise _refusal(name, f"signed_by {upstream['signed_by']} is not the whole fingerprint of a key")
    if not theirs.startswith(version):
        raise _refusal(name, f"its version {theirs} does not begin with the entry's, {version}")
    if not str(upstream["key"]).startswith("project:"):
        _https(name, str(upstream["key"]))
    return Apt(
        base=_https(name, str(upstream["apt"])).rstrip("/") + "/",
        suite=str(upstream.get("suite", "/")),
        component=str(upstream.get("component", "")),
        package=str(upstream.get("package", recipe.get("package", ""))),
        version=theirs,
        key=str(upstream["key"]),
        signed_by=fingerprint,
        sha256=_hash(name, str(upstream["sha256"])) if "sha256" in upstream else "",
    )


def _image(name: str, version: str, recipe: Mapping[str, Any], text: str) -> Image:
    match = _IMAGE.fullmatch(text)
    if not match:
        raise _refusal(name, f"{text} is not HOST/REPOSITORY:TAG@sha256:DIGEST")
    expected = str(recipe.get("reference", "")).format(version=version)
    if text.partition("@")[0].rpartition("/")[2] != expected.rpartition("/")[2]:
        raise _refusal(name, f"{text} is not {expected}, the reference in its recipe")
    pin = match["pin"]
    digest = "" if pin == UNPINNED else f"sha256:{_hash(name, pin.removeprefix('sha256:'))}"
    return Image(match["host"], match["repository"], match["tag"], digest)


def _download(name: str, version: str, item: Mapping[str, Any]) -> Download:
    url, separator, fragment = str(item.get("url", "")).partition("#sha256=")
    if not separator:
        raise _refusal(name, f"{url} has no hash; write {url}#sha256=HASH")
    if version.removeprefix("v") not in urllib.parse.unquote(url):
        raise _refusal(name, f"{url} does not contain the version {version}")
    if ("file" in item) == ("members" in item):
        raise _refusal(name, f"{url} needs either file or members")
    files = tuple(item["members"].items()) if "members" in item else ((str(item["file"]), ""),)
    return Download(_https(name, url), _hash(name, fragment), files)


def _hash(name: str, text: str) -> str:
    """Return the hexadecimal digits, or an empty text for the word `unpinned`."""
    if text == UNPINNED:
        return ""
    if not _SHA256.fullmatch(text):
        raise _refusal(name, f"{text} is not a SHA-256")
    return text


def _https(name: str, url: str) -> str:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "https" or not parts.hostname:
        raise _refusal(name, f"{url} is not an https:// address")
    return url


def _refusal(name: str, why: str) -> TrainyardError:
    return TrainyardError(
        f"The upstream of the lock's entry {name} is refused: {why}.",
        remedy="Pin it as described in docs/adr/0002-upstream-pins.md.",
    )
