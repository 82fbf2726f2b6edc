"""Facts of roles for other parts, each in its `meta/provides.yml`: ports, kernel features, namespaces, reset paths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..project import ROOT

ROLES = ROOT / "roles"
FILE = "meta/provides.yml"
"""Below the folder of a role."""


def provided(kind: str, loader: Any, roles: Path | None = None) -> list[Any]:
    """Return what each role provides of a kind, in the order of the roles' names; a role without it is left out.

    :param loader: Ansible's, which trusts the templates in these files.
    """
    files = (
        loader.load_from_file(str(path), trusted_as_template=True)
        for path in sorted((roles or ROLES).glob(f"*/{FILE}"))
    )
    return [file[kind] for file in files if kind in file]
