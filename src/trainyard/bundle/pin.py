"""Write the hashes of unpinned origins into the lock, and compare existing pins with the vendors' files.

Both need a machine that reaches the vendors. The first download is trusted, so review the diff like any other change.
"""

from __future__ import annotations

import os
import re
import tempfile
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..core.errors import TrainyardError
from . import lockfile
from .lockfile import Artefact
from .origin import UNPINNED, Apt, Downloads, Image, Origin
from .registry import NoRegistryError
from .vendor import http as fetch
from .vendor import upstream
from .vendor.vendor_apt import Archive


@dataclass(frozen=True)
class Pin:
    """One replacement in the text of the lock.

    :param origin: the origin's address with its separator ("...@" or "...#sha256="), as in the lock.
    :param value: text after the separator that replaces `unpinned`.
    """

    artefact: str
    origin: str
    value: str


@dataclass(frozen=True)
class Look:
    """The vendor's current hash for one address of the lock.

    :param origin: as in `Pin`.
    :param pinned: hash in the lock, or empty.
    :param found: the vendor's current hash, or empty.
    :param why: reason why `found` is empty.
    """

    artefact: str
    origin: str
    pinned: str
    found: str
    why: str = ""


def look(artefacts: Mapping[str, Artefact], project: Path, unpinned_only: bool = False) -> list[Look]:
    """Query the vendors' current hashes. A host that does not answer is queried only once."""
    archive = Archive(project)
    silent: dict[str, str] = {}
    looks = []
    for name, artefact in artefacts.items():
        for origin, url, pinned, ask in _questions(artefact.origin, archive):
            if unpinned_only and pinned:
                continue
            host = urllib.parse.urlsplit(url).netloc
            found, why = "", silent.get(host, "")
            if not why:
                try:
                    found = ask()
                except TrainyardError as error:
                    why = error.message
                    if isinstance(error, NoRegistryError) or (isinstance(error, fetch.HttpError) and not error.status):
                        silent[host] = why
            looks.append(Look(name, origin, pinned, found, why))
    return looks


def _questions(origin: Origin | None, archive: Archive) -> Iterator[tuple[str, str, str, Callable[[], str]]]:
    """Yield for each address: its text in the lock, its URL, its pin, and a function that returns the current hash."""
    if isinstance(origin, Image):
        yield f"{origin.name}@", origin.probe, origin.digest, partial(upstream.resolve, origin)
    elif isinstance(origin, Downloads):
        for item in origin.items:
            yield f"{item.url}#sha256=", item.url, item.sha256, partial(fetch.sha256_of, item.url)
    elif isinstance(origin, Apt):
        # The key is the pin. The hash in the signed index is compared only if the lock also has a hash.
        pinned = origin.sha256 or origin.signed_by
        yield (
            f"{origin.base} {origin.package} {origin.version}",
            origin.probe,
            pinned,
            lambda: _vouched(archive, origin),
        )


def _vouched(archive: Archive, origin: Apt) -> str:
    found = archive.stanza(origin)["SHA256"].lower()
    return found if origin.sha256 else origin.signed_by


def resolve(artefacts: Mapping[str, Artefact], project: Path) -> list[Pin]:
    """Return the pins that the lock lacks.

    :raises TrainyardError: the hash of an unpinned origin cannot be read.
    """
    looks = look(artefacts, project, unpinned_only=True)
    for found in looks:
        if not found.found:
            raise TrainyardError(
                f"{found.artefact} cannot be pinned: {found.why}",
                remedy="Run this on a machine that reaches the vendors. Nothing was written.",
            )
    return [Pin(found.artefact, found.origin, found.found) for found in looks]


def compare(artefacts: Mapping[str, Artefact], project: Path) -> list[Pin]:
    """Return the pins that the lock lacks, after checking that all others match their vendors' files.

    :raises TrainyardError: a pin does not match, or a hash cannot be read; the message lists all of them.
    """
    looks = look(artefacts, project)
    wrong = [
        f"{seen.artefact}: {seen.why or f'{seen.origin} is {seen.found} now, the lock has {seen.pinned}'}"
        for seen in looks
        if not seen.found or (seen.pinned and seen.found != seen.pinned)
    ]
    if wrong:
        raise TrainyardError(
            f"{len(wrong)} of {len(looks)} addresses in the lock do not match their vendors: {'; '.join(wrong)}",
            remedy="No answer: run this on a machine that reaches the vendor. Withdrawn: lock a version that is still "
            "published. Other bytes under the same version: find out why before you put a new hash into the lock. "
            "Until then, bundle_artifact_source=source builds it from its recipe.",
        )
    return [Pin(seen.artefact, seen.origin, seen.found) for seen in looks if not seen.pinned]


def write(path: Path, pins: list[Pin]) -> None:
    """Write the hashes into the lock atomically, keeping its comments and order.

    :raises TrainyardError: an origin in the lock does not have the form that can be replaced.
    """
    text = path.read_text(encoding="utf-8")
    for pin in pins:
        text, count = re.subn(f"{re.escape(pin.origin)}{UNPINNED}\\b", f"{pin.origin}{pin.value}", text)
        if not count:
            raise TrainyardError(
                f"The lock does not contain {pin.origin}{UNPINNED} for {pin.artefact}.",
                remedy="Write the origin on one line, without an anchor or a line break.",
            )
    with tempfile.NamedTemporaryFile(
        "w", dir=path.parent, prefix=f".{path.name}.", delete=False, encoding="utf-8"
    ) as new:
        new.write(text)
    try:
        lockfile.load(new.name)
        os.chmod(new.name, path.stat().st_mode & 0o777)
        os.replace(new.name, path)
    except BaseException:
        os.unlink(new.name)
        raise
