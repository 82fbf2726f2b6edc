"""The checkout that this code is read from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
"""The folder that Python has on its path; `make env` names it in `.venv`."""

ROOT = SOURCE.parent


def python_environment(environ: Mapping[str, str], source: Path = SOURCE) -> dict[str, str]:
    """Return the environment of a Python program that takes this package from a checkout.

    :param environ: the caller's; its own settings of Python are left out.
    :param source: of the checkout.
    """
    return {name: value for name, value in environ.items() if not name.startswith("PYTHON")} | {
        "PYTHONPATH": str(source)
    }
