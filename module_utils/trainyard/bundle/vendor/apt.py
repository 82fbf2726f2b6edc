"""Packages from vendors' signed apt repositories.

https://wiki.debian.org/DebianRepository/Format: the key signs `Release`, which has the hash of `Packages`, which has
the hash of the package. Each link of that chain is checked before the next one is read.
"""

from __future__ import annotations

import email.utils
import gzip
import hashlib
import lzma
import re
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from ...core.errors import TrainyardError
from ..build.deb import ARCHITECTURE
from ..origin import Apt
from ..program import run
from . import http as fetch

_UNPACK: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.decompress, ".xz": lzma.decompress, "": bytes}
_BAD = ("BADSIG", "EXPSIG", "EXPKEYSIG", "REVKEYSIG")


@dataclass
class Archive:
    """Reads indexes once, however many packages of the same repository are asked for.

    :param project: the repository's root, for keys that lie there.
    """

    project: Path
    _indexes: dict[tuple[str, ...], str] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def fetch(self, origin: Apt, out: Path, partial: Path) -> dict[str, str]:
        """Download one package into a folder and return the facts `deb`, `url` and `sha256`."""
        stanza = self.stanza(origin)
        vouched = stanza["SHA256"].lower()
        if origin.sha256 and origin.sha256 != vouched:
            raise fetch.mismatch(
                f"{origin.package} {origin.version} in the index of {origin.base}", origin.sha256, vouched
            )
        url = f"{origin.base}{stanza['Filename'].removeprefix('./')}"
        version = origin.version.rpartition(":")[2]
        name = f"{origin.package}_{version}_{ARCHITECTURE}.deb"
        fetch.download(url.replace("~", "%7E"), out / name, vouched, partial=partial / vouched)
        return {"deb": name, "url": url, "sha256": vouched}

    def stanza(self, origin: Apt) -> dict[str, str]:
        """The signed index's entry of a package.

        :raises TrainyardError: the index has no good signature, or not that package.
        """
        with self._lock:
            index = (origin.release, origin.component, origin.key, origin.signed_by)
            if index not in self._indexes:
                self._indexes[index] = self._packages(origin)
            packages = self._indexes[index]
        return _stanza(packages, origin)

    def _packages(self, origin: Apt) -> str:
        """The verified index of packages."""
        release = self._release(origin)
        folder = "" if origin.suite == "/" else f"{origin.component}/binary-{ARCHITECTURE}/"
        for ending, unpack in _UNPACK.items():
            for algorithm in ("SHA256", "SHA512"):
                expected = _listed(release, f"{folder}Packages{ending}", algorithm)
                if expected:
                    url = f"{origin.release}{folder}Packages{ending}"
                    content = fetch.read(url)
                    found = hashlib.new(algorithm, content).hexdigest()
                    if found != expected:
                        raise fetch.mismatch(url, expected, found, algorithm.replace("SHA", "SHA-"))
                    return unpack(content).decode()
        raise TrainyardError(
            f"The signed Release of {origin.release} lists no {folder}Packages with a SHA-256 or SHA-512."
        )

    def _release(self, origin: Apt) -> str:
        """The text of `Release`, of which exactly the origin's key has signed every byte."""
        key = self._key(origin)
        with tempfile.TemporaryDirectory(prefix="trainyard-gpg-") as home:
            gpg = ["gpg", f"--homedir={home}", "--batch", "--no-autostart", "--no-tty", "--status-fd=1"]
            run([*gpg, "--import"], stdin=key, timeout=30, ok=(0, 2))
            text, files = Path(home, "Release"), Path(home, "signed")
            try:
                files.write_bytes(fetch.read(f"{origin.release}InRelease"))
                # Only what gpg writes is signed; the file may have more around it.
                argv = [*gpg, f"--output={text}", "--decrypt", str(files)]
            except fetch.HttpError as error:
                if error.status not in (403, 404):
                    raise
                text.write_bytes(fetch.read(f"{origin.release}Release"))
                files.write_bytes(fetch.read(f"{origin.release}Release.gpg"))
                argv = [*gpg, "--verify", str(files), str(text)]
            status = run(argv, timeout=30, ok=(0, 1, 2)).stdout
            _check_signature(origin, status)
            release = text.read_text(encoding="utf-8")
        _check_valid_until(origin, release)
        return release

    def _key(self, origin: Apt) -> bytes:
        if origin.key.startswith("project:"):
            return (self.project / origin.key.removeprefix("project:")).read_bytes()
        return fetch.read(origin.key)


def _check_signature(origin: Apt, status: str) -> None:
    """Take gpg's machine-readable status apart: https://github.com/gpg/gnupg/blob/master/doc/DETAILS."""
    lines = [line.split()[1:] for line in status.splitlines() if line.startswith("[GNUPG:] ")]
    words = {line[0] for line in lines}
    # The last field of VALIDSIG is the primary key's fingerprint; the first may be that of a signing subkey.
    signers = {line[-1] for line in lines if line[0] == "VALIDSIG"}
    if origin.signed_by in signers and "GOODSIG" in words and not words & set(_BAD):
        return
    seen = sorted({" ".join(line[:2]) for line in lines if line[0] in (*_BAD, "VALIDSIG", "ERRSIG", "NO_PUBKEY")})
    raise TrainyardError(
        f"The index of {origin.release} has no good signature of the key {origin.signed_by}; "
        f"what it has: {', '.join(seen) or 'none'}.",
        remedy="Do not use it, unless the vendor has announced another key: then put its fingerprint into the lock.",
    )


def _check_valid_until(origin: Apt, release: str) -> None:
    match = re.search(r"^Valid-Until: (.+)$", release, re.MULTILINE)
    if match and email.utils.parsedate_to_datetime(match[1]).timestamp() < time.time():
        raise TrainyardError(
            f"The index of {origin.release} was valid until {match[1]}.",
            remedy="The server, or something on the way to it, keeps an old state; see also this machine's clock.",
        )


def _listed(release: str, name: str, algorithm: str) -> str:
    """Hash of a file that `Release` lists, or nothing; NVIDIA's has SHA-512 only."""
    section = re.search(rf"^{algorithm}:[ \t]*\n((?:[ \t].*\n?)+)", release, re.MULTILINE)
    for line in (section[1] if section else "").splitlines():
        digest, _, path = line.split()
        if path.removeprefix("./") == name:
            return digest.lower()
    return ""


def _stanza(packages: str, origin: Apt) -> dict[str, str]:
    """The index's entry of the wanted package."""
    versions = []
    for text in packages.split("\n\n"):
        fields = dict(re.findall(r"^([A-Za-z0-9-]+):[ \t]*(.*)$", text, re.MULTILINE))
        if fields.get("Package") != origin.package or fields.get("Architecture") not in (ARCHITECTURE, "all"):
            continue
        if fields["Version"] == origin.version:
            return fields
        versions.append(fields["Version"])
    raise TrainyardError(
        f"{origin.base} has no {origin.package} {origin.version} for {ARCHITECTURE}.",
        remedy=f"It has: {', '.join(versions[-8:]) or 'no version of it'}.",
    )
