"""Fetch packages from vendors' signed apt repositories, and the signing keys of these repositories.

Parts: the keys, fetched by address and verified by fingerprint; the packages. apt itself fetches and verifies the
indexes. The key signs `Release`, which contains the hash of `Packages`, which contains the hash of the package.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from ...core.errors import CommandError, TrainyardError
from ...core.untrusted import whole
from ..apt import ARCHITECTURE, PrivateApt
from ..build_program import run
from ..origin import Apt
from . import http

KEY_LIMIT = 1 << 20
"""Largest key file in bytes; the vendors' have a few KiB."""

_ARMOR = b"-----BEGIN PGP PUBLIC KEY BLOCK-----"


def fetch_key(url: str, fingerprint: str) -> str:
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


@dataclass
class Archive:
    """A reader of vendors' indexes, which reads each index only once.

    :param project: the repository's root, for keys in the repository.
    """

    project: Path
    _repositories: dict[tuple[str, ...], PrivateApt] = field(default_factory=dict)
    _folder: tempfile.TemporaryDirectory[str] = field(default_factory=tempfile.TemporaryDirectory)
    _lock: Lock = field(default_factory=Lock)

    def fetch(self, origin: Apt, out: Path, partial: Path) -> dict[str, str]:
        """Download one package into a folder and return the facts `deb`, `url` and `sha256`."""
        stanza = self.stanza(origin)
        vouched = stanza["SHA256"].lower()
        if origin.sha256 and origin.sha256 != vouched:
            raise http.mismatch(
                f"{origin.package} {origin.version} in the index of {origin.base}", origin.sha256, vouched
            )
        url = f"{origin.base}{stanza['Filename'].removeprefix('./')}"
        version = origin.version.rpartition(":")[2]
        name = f"{origin.package}_{version}_{ARCHITECTURE}.deb"
        limit = whole(stanza.get("Size"), 1, http.FILE_LIMIT) or http.FILE_LIMIT
        http.download(url.replace("~", "%7E"), out / name, vouched, partial=partial / vouched, limit=limit)
        return {"deb": name, "url": url, "sha256": vouched}

    def stanza(self, origin: Apt) -> dict[str, str]:
        """Return `Filename`, `SHA256` and `Size` of a package from the signed index.

        :raises TrainyardError: the index has no valid signature, or lacks the package.
        """
        with self._lock:
            index = (origin.release, origin.component, origin.key, origin.signed_by)
            if index not in self._repositories:
                self._repositories[index] = self._read(origin)
            apt = self._repositories[index]
            text = apt("apt-cache", "show", f"{origin.package}={origin.version}", ok=(0, 100))
            found = dict(re.findall(r"^(Filename|SHA256|Size): (\S+)$", text, re.MULTILINE))
            if not {"Filename", "SHA256"} <= found.keys():
                rows = apt("apt-cache", "madison", origin.package).splitlines()
                raise TrainyardError(
                    f"{origin.base} has no {origin.package} {origin.version} for {ARCHITECTURE}.",
                    remedy=f"Available versions: {', '.join(row.split()[2] for row in rows[:8]) or 'none'}.",
                )
        return found

    def _read(self, origin: Apt) -> PrivateApt:
        """Return an apt instance that has read and verified the origin's index."""
        root = Path(tempfile.mkdtemp(dir=self._folder.name))
        (root / "key.asc").write_text(only(self._key(origin), origin.signed_by), encoding="ascii")
        source = f"deb [signed-by={root}/key.asc] {origin.base} {origin.suite} {origin.component}"
        try:
            return PrivateApt(root / "apt", [source], is_strict=True)
        except CommandError as error:
            raise TrainyardError(
                f"apt refuses the index of {origin.release}, which the key {origin.signed_by} must sign: "
                f"{error.message.partition(': ')[2]}",
                remedy="Do not use it before you know the cause: the server, the network path, or this machine's "
                "clock. If the vendor has announced another key, put its fingerprint into the lock.",
            ) from error

    def _key(self, origin: Apt) -> bytes:
        if origin.key.startswith("project:"):
            return (self.project / origin.key.removeprefix("project:")).read_bytes()
        return http.read(origin.key)
