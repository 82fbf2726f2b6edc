"""Writing the hashes of unpinned origins into the lock, once, on a machine that reaches the vendors.

From then on they are enforced. The first look is trusted: the diff is to be reviewed like any other change.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import TrainyardError
from . import lock
from .lock import Artefact
from .origin import UNPINNED, Downloads, Image
from .vendor import http as fetch
from .vendor.images import Puller


@dataclass(frozen=True)
class Pin:
    """One replacement in the text of the lock.

    :param origin: the origin's address with its mark ("...@" or "...#sha256="), as the lock has it.
    :param value: what comes after the mark instead of `unpinned`.
    """

    artefact: str
    origin: str
    value: str


def resolve(artefacts: Mapping[str, Artefact]) -> list[Pin]:
    """Ask every vendor of an unpinned origin for the hash of what it serves.

    :raises TrainyardError: one does not answer.
    """
    puller = Puller()
    pins = []
    for name, artefact in artefacts.items():
        try:
            pins += _pins(name, artefact, puller)
        except TrainyardError as error:
            raise TrainyardError(
                f"{name} cannot be pinned: {error.message}",
                remedy="Run this on a machine that reaches the vendors. Nothing was written.",
            ) from error
    return pins


def _pins(name: str, artefact: Artefact, puller: Puller) -> list[Pin]:
    origin = artefact.origin
    if isinstance(origin, Image) and not origin.pinned:
        return [Pin(name, f"{origin.name}@", puller.resolve(origin))]
    if isinstance(origin, Downloads):
        wanted = [item.url for item in origin.items if not item.sha256]
        return [Pin(name, f"{url}#sha256=", fetch.sha256_of(url)) for url in wanted]
    return []


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
