"""Fetch artefacts from their vendors, with the same files and facts that the builders produce."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path
from typing import Any

from ...core.errors import TrainyardError
from ..lock import Artefact
from ..origin import Apt, Download, Image
from . import http as fetch
from . import images
from .apt import Archive


class Upstream:
    """A client of all vendors, which caches the index between artefacts of the same vendor.

    :param project: the repository's root.
    :param cache: the bundle's folder; unfinished downloads stay there and are resumed.
    """

    def __init__(self, project: Path, cache: Path) -> None:
        self._downloads = cache / "downloads"
        self._archive = Archive(project)

    def fetch(self, artefact: Artefact, out: Path) -> dict[str, Any]:
        """Fetch the files that a builder of the artefact's kind would produce, and return its facts.

        :raises TrainyardError: no answer, or the bytes do not match the pin.
        """
        # One folder per artefact, because two artefacts that are fetched concurrently may share a layer.
        partial = self._downloads / artefact.name
        origin = artefact.origin
        facts: dict[str, Any] = {}
        if isinstance(origin, Apt):
            facts = self._archive.fetch(origin, out, partial)
        elif isinstance(origin, Image):
            facts = images.fetch(origin, out, partial)
            # A site may keep a vendor's image under a name of its own.
            facts["reference"] = artefact.recipe["reference"].format(version=artefact.version)
        elif origin is not None:
            for item in origin.items:
                download(item, out, partial)
            for file in out.rglob("*") if artefact.kind == "go_programs" else []:
                file.chmod(0o755)
        shutil.rmtree(partial, ignore_errors=True)
        return facts


def download(item: Download, out: Path, partial: Path) -> None:
    """Fetch a file, or the listed members of a tar archive."""
    if len(item.files) == 1 and not item.files[0][1]:
        fetch.download(item.url, out / item.files[0][0], item.sha256, partial=partial / item.sha256)
        return
    archive = partial / "archive.tar"
    fetch.download(item.url, archive, item.sha256, partial=partial / item.sha256)
    with tarfile.open(archive) as stream:
        for destination, path in item.files:
            member = _member(stream, path)
            if member is None:
                raise TrainyardError(f"{item.url} has no file {path}.")
            place = out / destination
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("wb") as target:
                shutil.copyfileobj(member, target)


def _member(stream: tarfile.TarFile, path: str) -> Any:
    """Return a file of an archive; vendors write paths with and without a leading "./"."""
    for name in (path, f"./{path}"):
        try:
            return stream.extractfile(name)
        except KeyError:
            continue
    return None
