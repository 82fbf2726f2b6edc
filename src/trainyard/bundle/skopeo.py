"""Run skopeo, a registry client, with its failures classified by their remedy."""

from __future__ import annotations

import hashlib
import shutil

from ..core.errors import CommandError, TrainyardError
from .program import run

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
