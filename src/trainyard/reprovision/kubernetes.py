"""What a revision's lock file says about Kubernetes, which no schedule changes."""

from __future__ import annotations

import yaml


def version(lock: str) -> str:
    """The version in the text of a lock file.

    :raises ValueError: it is no lock file, or has none.
    """
    try:
        found = yaml.safe_load(lock)["artefacts"]["kubernetes"]["version"]
    # A file of somebody else's, of any shape and any depth.
    except (yaml.YAMLError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    return str(found)


def change(old: str, new: str) -> str:
    """What another version asks of a cluster, as a clause; empty where Kubernetes stays as it is."""
    if old == new:
        return ""
    part = "patch" if old.split(".")[:2] == new.split(".")[:2] else "minor"
    return f"asks for another {part} version of Kubernetes ({old} -> {new})"
