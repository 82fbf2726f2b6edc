"""Facts that roles provide in their `meta/provides.yml`: ports, kernel features, namespaces, reset paths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..project import ROOT

ROLES = ROOT / "roles"
FILE = "meta/provides.yml"
"""Path below the folder of a role."""


def provided(kind: str, loader: Any, roles: Path | None = None) -> list[Any]:
    """Return the facts of a kind, in the order of the roles' names, without roles that have none.

    :param kind: key in the file.
    :param loader: Ansible's loader, which trusts the templates in these files.
    """
    files = (
        loader.load_from_file(str(path), trusted_as_template=True)
        for path in sorted((roles or ROLES).glob(f"*/{FILE}"))
    )
    return [file[kind] for file in files if kind in file]
