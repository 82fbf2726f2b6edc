"""The checkout of this code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
"""The folder on Python's path; `make env` adds it in `.venv`."""

ROOT = SOURCE.parent


def python_path(root: Path = ROOT) -> str:
    """Return the PYTHONPATH of a checkout: the package, and `workloads`, whose table of versions site rules read."""
    return os.pathsep.join(str(root / folder) for folder in ("src", "workloads"))


def python_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a Python program that imports this package from this checkout.

    :param environ: of the caller; its settings of Python are removed.
    """
    kept = {name: value for name, value in environ.items() if not name.startswith("PYTHON")}
    return {**kept, "PYTHONPATH": python_path()}
