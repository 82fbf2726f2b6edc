"""The context passed to all builders: locations of the inputs, and the machine's options."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .lockfile import Reference, tree_files

EPOCH = 1767225600
"""2026-01-01T00:00:00Z, the timestamp of all built files, so that equal inputs give equal bytes."""


@dataclass
class Context:
    """The context of a build.

    :param project: the repository's root.
    :param cache: folder for the tools' own caches (Go modules, image layers, package pools).
    :param debian_mirror: base URL of a Debian archive.
    :param go: folder of the Go program; empty for the one on the PATH.
    :param made: folders of the existing artefacts, by name.
    :param previous: returns the facts of the newest artefact with a name, or an empty mapping.
    """

    project: Path
    cache: Path
    debian_mirror: str
    go: str = ""
    made: dict[str, Path] = field(default_factory=dict)
    previous: Callable[[str], Mapping[str, Any]] = lambda name: {}

    def resolve(self, reference: str) -> Path:
        """Return the path of a reference."""
        parsed = Reference.parse(reference)
        base = self.project if parsed.kind == "project" else self.made[parsed.artefact]
        return base / parsed.path

    def copy(self, files: Mapping[str, str], target: Path) -> None:
        """Copy references to paths below `target`: `{destination: reference}`; folders are copied whole."""
        for destination, reference in files.items():
            source = self.resolve(reference)
            for file in tree_files(source):
                place = target / destination.lstrip("/")
                if source.is_dir():
                    place = place / file.relative_to(source)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, place)
