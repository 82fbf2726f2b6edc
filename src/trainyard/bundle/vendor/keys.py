"""Fetch signing keys of package repositories by address, and verify them by fingerprint."""

from __future__ import annotations

import tempfile

from ...core.errors import TrainyardError
from ..program import run
from . import http

KEY_LIMIT = 1 << 20
"""Largest key file in bytes; the vendors' have a few KiB."""

_ARMOR = b"-----BEGIN PGP PUBLIC KEY BLOCK-----"


def fetch(url: str, fingerprint: str) -> str:
    """Fetch a key file, which must contain exactly one primary key, and return it armored.

    :param fingerprint: fingerprint of that key, forty hexadecimal digits.
    :raises TrainyardError: the file cannot be fetched, is not a key file, or contains another key.
    """
    content = http.read(url, limit=KEY_LIMIT)
    found = fingerprints(content)
    if found != [fingerprint.upper()]:
        raise TrainyardError(
            f"{url} has the key {', '.join(found) or 'none'} instead of {fingerprint}.",
            remedy="Do not use it. If the vendor has announced another key, set its fingerprint.",
        )
    if _ARMOR in content:
        return content.decode("ascii", "replace").strip() + "\n"
    return only(content, fingerprint)


def only(content: bytes, fingerprint: str) -> str:
    """Return only the given key of a key file, armored; empty if the file does not contain it."""
    with tempfile.TemporaryDirectory(prefix="trainyard-gpg-") as home:
        gpg = ["gpg", f"--homedir={home}", "--batch", "--no-autostart", "--no-tty"]
        run([*gpg, "--import"], stdin=content, timeout=30, ok=(0, 2))
        return run([*gpg, "--armor", "--export", fingerprint], timeout=30).stdout


def fingerprints(content: bytes) -> list[str]:
    """Return the fingerprints of the primary keys in a key file; empty if it is not a key file."""
    with tempfile.TemporaryDirectory(prefix="trainyard-gpg-") as home:
        argv = ["gpg", f"--homedir={home}", "--batch", "--no-autostart", "--no-tty", "--with-colons", "--show-keys"]
        lines = run(argv, stdin=content, timeout=30, ok=(0, 2)).stdout.splitlines()
    primary = [index for index, line in enumerate(lines) if line.startswith("pub:")]
    # The record after `pub` is that key's own fingerprint: https://github.com/gpg/gnupg/blob/master/doc/DETAILS.
    found = [next((line for line in lines[index:] if line.startswith("fpr:")), "") for index in primary]
    return [line.split(":")[9] for line in found if line]
