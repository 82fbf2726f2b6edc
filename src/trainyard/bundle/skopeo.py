"""skopeo, the client of registries, with its failures told apart by what can be done about them."""

from __future__ import annotations

import hashlib
import shutil

from ..core.errors import CommandError, TrainyardError
from .program import run

ASK_TIMEOUT = 60
"""Seconds for one question to a registry."""
_ABSENT = ("manifest unknown", "name unknown", "repository name not known")
"""Messages of the distribution specification's codes MANIFEST_UNKNOWN and NAME_UNKNOWN."""
_NO_CONNECTION = "dial tcp"
"""How Go's network errors begin when there was no connection, so no answer of any kind."""


class NoRegistryError(TrainyardError):
    """Nothing answers at the registry's address, or its certificates do not exist: a site that is not built yet."""


def skopeo(registry: str, *arguments: str, timeout: float = ASK_TIMEOUT, stdin: bytes | None = None) -> str:
    """Run skopeo and return what it prints.

    :param registry: address of the registry, for errors.
    :param timeout: seconds.
    :raises NoRegistryError: nothing answers there.
    :raises TrainyardError: anything else went wrong.
    """
    if shutil.which("skopeo") is None:
        raise TrainyardError("skopeo is not installed.", remedy="Install its package, as the role bundle does.")
    # No policy of this machine about where images may come from: each is told by its digest.
    argv = ["skopeo", "--insecure-policy", *arguments]
    try:
        return run(argv, timeout=timeout, stdin=stdin).stdout
    except CommandError as error:
        raise _explained(registry, error.message.partition(": ")[2] or error.message) from error


def digest_of_tag(registry: str, reference: str, *options: str) -> str | None:
    """Digest of the manifest behind a tag, from the manifest's own bytes; None when the registry does not have it.

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
            remedy="See whether it runs and whether the address is right.",
        )
    if "x509" in text or "tls:" in text:
        return TrainyardError(
            f"The certificate of the registry {registry} is not accepted: {text}",
            remedy="Name the authority that signed it, or see whether the address is right.",
        )
    if any(word in text.lower() for word in ("unauthorized", "denied", "forbidden", "invalid username")):
        return TrainyardError(
            f"The registry {registry} refuses the login: {text}",
            remedy="See whether the credentials are right and may read and write there.",
        )
    return TrainyardError(f"The registry {registry} failed: {text}")
