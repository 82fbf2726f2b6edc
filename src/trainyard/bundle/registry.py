"""Push OCI layouts to a registry with skopeo.

Parts: the calls of skopeo, a registry client, with failures classified by their remedy; the pushes.
"""

from __future__ import annotations

import hashlib
import shutil
import urllib.parse
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from ..core.errors import CommandError, TrainyardError
from ..core.plan import MISSING, Change, Plan, Step
from .build_program import run

ASK_TIMEOUT = 60
"""Seconds for one query to a registry."""
_ABSENT = ("manifest unknown", "name unknown", "repository name not known")
"""Messages of the distribution specification's codes MANIFEST_UNKNOWN and NAME_UNKNOWN."""
_NO_CONNECTION = "dial tcp"
"""Text in Go's network errors if there was no connection, and so no answer."""


class NoRegistryError(TrainyardError):
    """The registry does not answer, or its certificates do not exist, as for a site that is not built yet."""


def skopeo(registry: str, *arguments: str, timeout: float = ASK_TIMEOUT, stdin: bytes | None = None) -> str:
    """Run skopeo and return its output.

    :param registry: address of the registry, for errors.
    :param timeout: seconds.
    :raises NoRegistryError: the registry does not answer.
    :raises TrainyardError: any other failure.
    """
    if shutil.which("skopeo") is None:
        raise TrainyardError("skopeo is not installed.", remedy="Install its package, as the role bundle does.")
    # Ignore this machine's policy for image sources, because images are verified by digest.
    argv = ["skopeo", "--insecure-policy", *arguments]
    try:
        return run(argv, timeout=timeout, stdin=stdin).stdout
    except CommandError as error:
        raise _explained(registry, error.message.partition(": ")[2] or error.message) from error


def digest_of_tag(registry: str, reference: str, *options: str) -> str | None:
    """Return the digest of the manifest behind a tag, computed from its bytes; None if the registry lacks the tag.

    :param reference: "host/repository:tag".
    """
    try:
        manifest = skopeo(registry, "inspect", "--raw", *options, f"docker://{reference}")
    except TrainyardError as error:
        if any(text in error.message for text in _ABSENT):
            return None
        raise
    return f"sha256:{hashlib.sha256(manifest.encode()).hexdigest()}"


def _explained(registry: str, text: str) -> TrainyardError:
    if _NO_CONNECTION in text:
        return NoRegistryError(
            f"The registry {registry} does not answer: {text}",
            remedy="Check that it runs and that the address is correct.",
        )
    if "x509" in text or "tls:" in text:
        return TrainyardError(
            f"The certificate of the registry {registry} is not accepted: {text}",
            remedy="Set the CA that signed it, or check that the address is correct.",
        )
    if any(word in text.lower() for word in ("unauthorized", "denied", "forbidden", "invalid username")):
        return TrainyardError(
            f"The registry {registry} refuses the login: {text}",
            remedy="Check that the credentials are correct and may read and write there.",
        )
    return TrainyardError(f"The registry {registry} failed: {text}")


QUESTIONS = 4
"""Concurrent requests for digests."""
PUSH_TIMEOUT = 3600
"""Seconds for one image: 2 GB over 5 Mbit/s."""


@dataclass(frozen=True)
class Image:
    """An image in a layout, and its name in the registry.

    :param reference: "repository:tag" below the registry, e.g. "registry.k8s.io/kube-proxy:v1.36.3".
    :param digest: digest of its manifest, "sha256:...".
    """

    reference: str
    layout: Path
    digest: str


@dataclass(frozen=True)
class Access:
    """CA and credentials for a registry. Files are passed by path, so that command lines contain no secrets.

    :param ca_file: CA that signed the registry's certificate; empty for the system's CAs.
    :param client_cert: client certificate, with `client_key`.
    :param auth_file: file with logins, in the format of `skopeo login`.
    :param username: with `password`, a login that is tested first.
    """

    ca_file: str = ""
    client_cert: str = ""
    client_key: str = ""
    auth_file: str = ""
    username: str = ""
    password: str = ""


class Registry:
    """A registry over HTTPS.

    :param folder: an empty folder for certificates and the login, which the caller removes.
    """

    def __init__(self, url: str, access: Access, folder: Path) -> None:
        self.url = url
        self._host = urllib.parse.urlsplit(url).netloc
        self._access = access
        self._certificates = folder
        self._auth_file = access.auth_file or (f"{folder}/auth.json" if access.username else "")

    def open(self) -> None:
        """Prepare the certificates and test the login.

        :raises NoRegistryError: a file does not exist, or the registry does not answer.
        :raises TrainyardError: the login is refused.
        """
        access = self._access
        # skopeo distinguishes these files by their suffixes.
        files = {"ca.crt": access.ca_file, "client.cert": access.client_cert, "client.key": access.client_key}
        for name, source in files.items():
            if source and not Path(source).is_file():
                raise NoRegistryError(f"{source}, needed to reach the registry {self.url}, does not exist.")
            if source:
                (self._certificates / name).symlink_to(Path(source).absolute())
        if access.username:
            self._login(access.username, access.password)

    def digest(self, reference: str) -> str | None:
        """Return the digest of the manifest behind a tag, or None if the registry does not have it."""
        options = [f"--cert-dir={self._certificates}", *self._auth("--authfile")]
        return digest_of_tag(self.url, f"{self._host}/{reference}", *options)

    def push(self, pushed: Image) -> None:
        """Push the missing parts of an image, and then its tag.

        :raises TrainyardError: the registry refuses or does not answer in time, or the layout is damaged.
        """
        if not (pushed.layout / "blobs" / pushed.digest.replace(":", "/")).is_file():
            raise TrainyardError(
                f"The layout {pushed.layout} of {pushed.reference} lacks {pushed.digest}.",
                remedy="Run the role bundle again: it detects a damaged image and builds it again.",
            )
        options = [
            "--quiet",
            "--preserve-digests",
            f"--dest-cert-dir={self._certificates}",
            *self._auth("--dest-authfile"),
        ]
        target = f"docker://{self._host}/{pushed.reference}"
        skopeo(self.url, "copy", *options, f"oci:{pushed.layout}", target, timeout=PUSH_TIMEOUT)

    def _login(self, username: str, password: str) -> None:
        options = [f"--cert-dir={self._certificates}", *self._auth("--authfile"), f"--username={username}"]
        skopeo(self.url, "login", *options, "--password-stdin", self._host, stdin=password.encode())

    def _auth(self, option: str) -> list[str]:
        return [f"{option}={self._auth_file}"] if self._auth_file else []


@contextmanager
def registry(url: str, access: Access) -> Iterator[Registry]:
    """Provide a registry for the duration of the block.

    :param url: "https://host:port".
    :raises TrainyardError: the address is invalid.
    """
    parsed = urllib.parse.urlsplit(url)
    if parsed.scheme != "https" or not parsed.hostname or parsed.path.strip("/"):
        raise TrainyardError(f"{url} is not the https:// address of a registry.")
    with TemporaryDirectory(prefix="trainyard-registry-") as folder:
        yield Registry(url, access, Path(folder))


def make_plan(there: Registry, images: Sequence[Image], *, may_be_absent: bool) -> Plan:
    """Plan to push the images that the registry lacks or has with another digest.

    :param may_be_absent: the registry need not answer yet, as for a site that is only planned.
    """
    found: list[str | None] = [None] * len(images)
    try:
        there.open()
        with ThreadPoolExecutor(QUESTIONS) as pool:
            found = list(pool.map(there.digest, [image.reference for image in images]))
    except NoRegistryError:
        if not may_be_absent:
            raise
    steps = [
        Step(
            f"Push {image.reference}",
            partial(there.push, image),
            [Change(f"image {image.reference}", digest or MISSING, image.digest)],
        )
        for image, digest in zip(images, found, strict=True)
        if digest != image.digest
    ]
    names = [image.reference for image in images]
    before, after = dict(zip(names, found, strict=True)), {image.reference: image.digest for image in images}
    return Plan(steps, before, after, by_subject=False)
