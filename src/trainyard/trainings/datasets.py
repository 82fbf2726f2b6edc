"""Sources of a training's data: an image, a claim, or an archive that is imported onto a claim."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .references import Defaults

SOURCES = {"image": "image", "import": "url", "claim": "claim"}
"""Source of data -> the key that implies it."""
DATASETS = "datasets"
"""Default claim for imported data."""
IMPORTER = {
    "runtime": {"repository": "tensorflow", "artefact": "image_tensorflow"},
    "code": {"repository": "workloads", "artefact": "image_workloads"},
}
"""Images of an import: the Python runtime and the program."""


def with_source(described: Mapping[str, Any]) -> dict[str, Any]:
    """Add the source of the data to a description, from its short form or from the keys that are given."""
    data = described.get("data")
    if isinstance(data, str) and data:
        data = {"source": data}
    elif isinstance(data, Mapping) and data and "source" not in data:
        source = next((name for name, key in SOURCES.items() if data.get(key)), None)
        # The owner of a claim chooses its folders: the folder of the entry's import does not apply.
        data = {**({"folder": ""} if source == "claim" else {}), **data, **({"source": source} if source else {})}
    return {**described, **({"data": data} if data else {})}


def completed(data: Any, site: Defaults) -> Any:
    """Return only the keys of a run's data source, without those of other sources that its entry offers."""
    if not isinstance(data, Mapping):
        return data
    known = {key: data.get(key) for key in ("image", "claim", "folder", "url", "sha256")}
    strange = {key: value for key, value in data.items() if key not in (*known, "source")}
    if data.get("source") == "image":
        return {**strange, "image": site.reference(known["image"])}
    if data.get("source") == "claim":
        return {**strange, "claim": known["claim"], "folder": known["folder"]}
    if data.get("source") == "import":
        programs = {key: site.reference(image) for key, image in IMPORTER.items()}
        found = {**strange, **known, **programs, **site.archive(str(known["url"] or ""))}
        return {**found, "image": None, "claim": known["claim"] or DATASETS}
    return dict(data)
