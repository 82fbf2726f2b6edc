"""The version of Kubernetes in the lock file of a revision. No schedule changes it."""

from __future__ import annotations

import yaml


def version(lock: str) -> str:
    """Return the version in the text of a lock file.

    :raises ValueError: the text is not a lock file, or has no version.
    """
    try:
        found = yaml.safe_load(lock)["artefacts"]["kubernetes"]["version"]
    # The file is untrusted and may have any shape and depth.
    except (yaml.YAMLError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    return str(found)


def change(old: str, new: str) -> str:
    """Return how a new version differs from the old one, as a clause; empty if it is the same."""
    if old == new:
        return ""
    part = "patch" if old.split(".")[:2] == new.split(".")[:2] else "minor"
    return f"requires another {part} version of Kubernetes ({old} -> {new})"
