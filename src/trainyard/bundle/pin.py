"""Writing the hashes of unpinned origins into the lock, and comparing the pins there with what the vendors serve.

Both on a machine that reaches the vendors. The first look is trusted: the diff is to be reviewed like any other change.
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
from . import lock
from .lock import Artefact
from .origin import UNPINNED, Apt, Downloads, Image, Origin
from .skopeo import NoRegistryError
from .vendor import http as fetch
from .vendor import images
from .vendor.apt import Archive


@dataclass(frozen=True)
class Pin:
    """One replacement in the text of the lock.

    :param origin: the origin's address with its mark ("...@" or "...#sha256="), as the lock has it.
    :param value: what comes after the mark instead of `unpinned`.
    """

    artefact: str
    origin: str
    value: str


@dataclass(frozen=True)
class Look:
    """What a vendor serves at this moment for one address of the lock.

    :param origin: as of `Pin`.
    :param pinned: hash that the lock has, or nothing.
    :param found: hash of what is served, or nothing.
    :param why: why there is no hash.
    """

    artefact: str
    origin: str
    pinned: str
    found: str
    why: str = ""


def look(artefacts: Mapping[str, Artefact], project: Path, unpinned_only: bool = False) -> list[Look]:
    """Ask every vendor for the hash of what it serves; one that does not answer is asked once."""
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
    """For each address: how the lock writes it, its URL, its pin, and what tells the present hash."""
    if isinstance(origin, Image):
        yield f"{origin.name}@", origin.probe, origin.digest, partial(images.resolve, origin)
    elif isinstance(origin, Downloads):
        for item in origin.items:
            yield f"{item.url}#sha256=", item.url, item.sha256, partial(fetch.sha256_of, item.url)
    elif isinstance(origin, Apt):
        # The key is the pin; the hash is the signed index's, and compared only where the lock has one as well.
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
    """The pins that the lock lacks.

    :raises TrainyardError: a vendor of an unpinned origin does not say.
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
    """The pins that the lock lacks, when every other one is what its vendor serves.

    :raises TrainyardError: one is not, or a vendor does not say; names all of them.
    """
    looks = look(artefacts, project)
    wrong = [
        f"{seen.artefact}: {seen.why or f'{seen.origin} is {seen.found} now, the lock has {seen.pinned}'}"
        for seen in looks
        if not seen.found or (seen.pinned and seen.found != seen.pinned)
    ]
    if wrong:
        raise TrainyardError(
            f"{len(wrong)} of {len(looks)} addresses in the lock are not what their vendors serve: {'; '.join(wrong)}",
            remedy="No answer: run this on a machine that reaches the vendor. Withdrawn: lock a version that is still "
            "published. Other bytes under the same version: find out why before a new hash goes into the lock. "
            "Until then bundle_artifact_source=source makes it here.",
        )
    return [Pin(seen.artefact, seen.origin, seen.found) for seen in looks if not seen.pinned]


def write(path: Path, pins: list[Pin]) -> None:
    """Put the hashes into the lock, which keeps its comments and order, and appears whole or not at all.

    :raises TrainyardError: the lock does not hold an origin in the one form that can be replaced.
    """
    text = path.read_text(encoding="utf-8")
    for pin in pins:
        text, count = re.subn(f"{re.escape(pin.origin)}{UNPINNED}\\b", f"{pin.origin}{pin.value}", text)
        if not count:
            raise TrainyardError(
                f"The lock does not say {pin.origin}{UNPINNED} for {pin.artefact}.",
                remedy="Write the origin on one line, without an anchor or a line break.",
            )
    with tempfile.NamedTemporaryFile(
        "w", dir=path.parent, prefix=f".{path.name}.", delete=False, encoding="utf-8"
    ) as new:
        new.write(text)
    try:
        lock.load(new.name)
        os.chmod(new.name, path.stat().st_mode & 0o777)
        os.replace(new.name, path)
    except BaseException:
        os.unlink(new.name)
        raise
