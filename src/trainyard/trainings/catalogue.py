"""The catalogue of workloads, and the merge of descriptions of a training.

Parts: the merge, with the faults that prevent it; the catalogue. The catalogue has one YAML file per entry, in the
project's folder and in those of a site.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from ..core.errors import TrainyardError
from ..project import ROOT
from .description_checks import Fault
from .roles import ROLES

JOINED = frozenset({"limits", "requests", "env", "node_selector", "flags", "logs", "data", *ROLES})
"""Keys whose mappings are merged key by key. All other values are replaced as a whole."""


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two descriptions. `above` takes precedence; volumes are merged by name."""
    both = {**below, **above}
    for key in below.keys() & above.keys():
        one, other = below[key], above[key]
        if key in JOINED and isinstance(one, Mapping) and isinstance(other, Mapping):
            both[key] = merged(one, other)
        elif key == "volumes" and isinstance(one, list) and isinstance(other, list):
            named = {each.get("name"): each for each in [*one, *other] if isinstance(each, Mapping)}
            both[key] = list(named.values())
    return both


def no_mappings(described: Mapping[str, Any], place: str = "") -> Iterator[Fault]:
    """Yield a fault for each key that needs a mapping and has another value. The value may be secret and is not shown.

    :param place: prefix of the keys: the role and a dot.
    """
    for key, value in described.items():
        if key not in JOINED or value is None:
            continue
        if isinstance(value, Mapping):
            yield from no_mappings(value, f"{key}.") if key in ROLES else ()
        elif place or not _has_a_short_form(key, value):
            kind = "a text" if isinstance(value, str) else "a list" if isinstance(value, list) else "a single value"
            yield Fault(f"{place}{key}", f"is {kind}", "it must be a mapping, with keys of its own")


def _has_a_short_form(key: str, value: Any) -> bool:
    """Return whether a value is a short form: the number of a role's pods, or the name of a data source."""
    return (key in ROLES and isinstance(value, int | str)) or (key == "data" and isinstance(value, str))


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
