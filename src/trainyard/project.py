"""The checkout of this code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
"""The folder on Python's path; `make env` adds it in `.venv`."""

ROOT = SOURCE.parent


def python_environment(environ: Mapping[str, str], source: Path = SOURCE) -> dict[str, str]:
    """Return the environment of a Python program that imports this package from a checkout.

    :param environ: of the caller; its settings of Python are removed.
    :param source: source folder of the checkout.
    """
    return {name: value for name, value in environ.items() if not name.startswith("PYTHON")} | {
        "PYTHONPATH": str(source)
    }
