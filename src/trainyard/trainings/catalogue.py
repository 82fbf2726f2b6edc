"""The catalogue of workloads: one YAML file per entry, in the project's folder and in those of a site."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from ..core.errors import TrainyardError
from ..project import ROOT
from .mappings import no_mappings

FOLDER = ROOT / "workloads" / "catalogue"
"""The project's own entries."""

KINDS = ("training", "service")
"""Kinds of entries."""

Catalogue = Mapping[str, Mapping[str, Any]]

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_catalogue(folders: Iterable[str | Path], own: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """Return all entries by name, which is that of the file.

    :param folders: folders of the site, in addition to the project's.
    :raises TrainyardError: a folder or file cannot be read, an entry is invalid, or two files have the same name.
    """
    found: dict[str, dict[str, Any]] = {}
    places: dict[str, Path] = {}
    for folder in (own, *(Path(each).expanduser() for each in folders)):
        if not folder.is_dir():
            raise TrainyardError(
                f"The catalogue {folder} is not a folder.", remedy="Set folders in workloads_catalogues."
            )
        for path in sorted(folder.glob("*.yml")):
            name = path.stem
            if name in places:
                raise TrainyardError(
                    f"The workload {name} is in two catalogues: {places[name]} and {path}.",
                    remedy="Give one of the files another name.",
                )
            places[name], found[name] = path, _entry(path)
    return found


def _entry(path: Path) -> dict[str, Any]:
    try:
        entry = yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)  # noqa: S506 - a safe loader
    except (OSError, yaml.YAMLError) as error:
        raise TrainyardError(f"{path} cannot be read: {error}.", remedy="Correct the file.") from error
    if not isinstance(entry, dict) or not entry.get("description"):
        raise TrainyardError(f"{path} is not an entry of a catalogue.", remedy="Set a description.")
    if entry.get("kind") not in KINDS:
        raise TrainyardError(f"{path}: the kind is {entry.get('kind')!r}.", remedy=f"Use one of: {', '.join(KINDS)}.")
    if (entry["kind"] == "service") != (entry.get("topology") == "service"):
        raise TrainyardError(
            f"{path}: the kind is {entry['kind']}, but the topology is {entry.get('topology')}.",
            remedy="Set both kind and topology to service, or neither.",
        )
    if faults := list(no_mappings(entry)):
        raise TrainyardError(f"{path}: {'; '.join(map(str, faults))}", remedy="Correct the file.")
    return entry
