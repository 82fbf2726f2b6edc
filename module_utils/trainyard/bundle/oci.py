"""Pushing OCI layouts to a registry, with skopeo."""

from __future__ import annotations

import hashlib
import urllib.parse
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from ..core.command import run
from ..core.errors import CommandError, TrainyardError
from ..core.plan import Plan, Step

ASK_TIMEOUT = 60
"""Seconds for one question to the registry."""
QUESTIONS = 4
"""Questions asked at a time."""
PUSH_TIMEOUT = 3600
"""Seconds for one image: 2 GB over 5 Mbit/s."""
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
MANIFEST_TYPES = (MANIFEST_TYPE, "application/vnd.docker.distribution.manifest.v2+json")
INDEX_TYPES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_ABSENT = ("manifest unknown", "name unknown", "repository name not known")
"""Messages of the distribution specification's codes MANIFEST_UNKNOWN and NAME_UNKNOWN."""
_NO_CONNECTION = "dial tcp"
"""How Go's network errors begin when there was no connection, so no answer of any kind."""


class NoRegistryError(TrainyardError):
    """Nothing answers at the registry's address, or its certificates do not exist: a site that is not built yet."""


@dataclass(frozen=True)
class Image:
    """An image in a layout and the name that it gets in the registry.

    :param reference: "repository:tag" below the registry, e.g. "registry.k8s.io/kube-proxy:v1.36.3".
    :param digest: of its manifest, "sha256:...".
    """

    reference: str
    layout: Path
    digest: str


@dataclass(frozen=True)
class Access:
    """How to reach a registry and who asks. Files are given by path, so that no secret stands in a command line.

    :param ca_file: the authority that signed the registry's certificate; empty for the system's.
    :param client_cert: certificate to show, with `client_key`.
    :param auth_file: file with logins as `skopeo login` writes it.
    :param username: with `password`, a login that is tried before anything else.
    """

    ca_file: str = ""
    client_cert: str = ""
    client_key: str = ""
    auth_file: str = ""
    username: str = ""
    password: str = ""


class Registry:
    """A registry over HTTPS.

    :param folder: an empty one for its certificates and for the login; it outlives this object.
    """

    def __init__(self, url: str, access: Access, folder: Path) -> None:
        self.url = url
        self._host = urllib.parse.urlsplit(url).netloc
        self._access = access
        self._certificates = folder
        self._auth_file = access.auth_file or (f"{folder}/auth.json" if access.username else "")

    def open(self) -> None:
        """Lay out the certificates and try the login.

        :raises NoRegistryError: there is no such file or nothing answers.
        :raises TrainyardError: the login is refused.
        """
        access = self._access
        # skopeo tells these files apart by their suffixes.
        files = {"ca.crt": access.ca_file, "client.cert": access.client_cert, "client.key": access.client_key}
        for name, source in files.items():
            if source and not Path(source).is_file():
                raise NoRegistryError(f"{source}, needed to reach the registry {self.url}, does not exist.")
            if source:
                (self._certificates / name).symlink_to(Path(source).absolute())
        if access.username:
            self._login(access.username, access.password)

    def digest(self, reference: str) -> str | None:
        """Digest of the manifest behind a tag, or None when the registry does not have it."""
        options = [f"--cert-dir={self._certificates}", *self._auth("--authfile")]
        try:
            manifest = run(
                ["skopeo", "inspect", "--raw", *options, f"docker://{self._host}/{reference}"], timeout=ASK_TIMEOUT
            ).stdout
        except CommandError as error:
            if any(text in error.message for text in _ABSENT):
                return None
            raise self._explained(error) from error
        return f"sha256:{hashlib.sha256(manifest.encode()).hexdigest()}"

    def push(self, pushed: Image) -> None:
        """Send what the registry lacks of an image, and then name it.

        :raises TrainyardError: the registry refuses, does not answer in time, or the layout is damaged.
        """
        if not (pushed.layout / "blobs" / pushed.digest.replace(":", "/")).is_file():
            raise TrainyardError(
                f"The layout {pushed.layout} of {pushed.reference} lacks {pushed.digest}.",
                remedy="Run the bundle role again: it notices what is damaged and makes it anew.",
            )
        options = [
            "--quiet",
            "--preserve-digests",
            f"--dest-cert-dir={self._certificates}",
            *self._auth("--dest-authfile"),
        ]
        # No policy of this machine about where images may come from: these are the bundle's own, told by their digests.
        argv = ["skopeo", "--insecure-policy", "copy", *options, f"oci:{pushed.layout}"]
        try:
            run([*argv, f"docker://{self._host}/{pushed.reference}"], timeout=PUSH_TIMEOUT, outlives=False)
        except CommandError as error:
            raise self._explained(error) from error

    def _login(self, username: str, password: str) -> None:
        options = [f"--cert-dir={self._certificates}", *self._auth("--authfile"), f"--username={username}"]
        try:
            run(
                ["skopeo", "login", *options, "--password-stdin", self._host],
                timeout=ASK_TIMEOUT,
                stdin=password.encode(),
            )
        except CommandError as error:
            raise self._explained(error) from error

    def _auth(self, option: str) -> list[str]:
        return [f"{option}={self._auth_file}"] if self._auth_file else []

    def _explained(self, error: CommandError) -> TrainyardError:
        text = error.message.partition(": ")[2] or error.message
        if _NO_CONNECTION in text:
            return NoRegistryError(
                f"The registry {self.url} does not answer: {text}",
                remedy="See whether it runs and whether the address is right.",
            )
        if "x509" in text or "tls:" in text:
            return TrainyardError(
                f"The certificate of the registry {self.url} is not accepted: {text}",
                remedy="Name the authority that signed it, or see whether the address is right.",
            )
        if any(word in text.lower() for word in ("unauthorized", "denied", "forbidden", "invalid username")):
            return TrainyardError(
                f"The registry {self.url} refuses the login: {text}",
                remedy="See whether the credentials are right and may read and write there.",
            )
        return TrainyardError(f"The registry {self.url} failed: {text}")


@contextmanager
def registry(url: str, access: Access) -> Iterator[Registry]:
    """A registry that is used until the block ends.

    :param url: "https://host:port".
    :raises TrainyardError: the address is none.
    """
    parsed = urllib.parse.urlsplit(url)
    if parsed.scheme != "https" or not parsed.hostname or parsed.path.strip("/"):
        raise TrainyardError(f"{url} is not the https:// address of a registry.")
    with TemporaryDirectory(prefix="trainyard-registry-") as folder:
        yield Registry(url, access, Path(folder))


def make_plan(there: Registry, images: Sequence[Image], *, may_be_absent: bool) -> Plan:
    """Plan to push what the registry does not have under its tag.

    :param may_be_absent: nothing has to answer yet, as on a site that is only planned.
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
        Step(f"Push {image.reference}", partial(there.push, image))
        for image, digest in zip(images, found, strict=True)
        if digest != image.digest
    ]
    names = [image.reference for image in images]
    return Plan(steps, dict(zip(names, found, strict=True)), {image.reference: image.digest for image in images})
