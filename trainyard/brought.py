"""What the roles bring to hosts and cluster, each in its `meta/brings.yml`: ports, kernel features, namespaces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

ROLES = Path(__file__).resolve().parents[1] / "roles"


def brought(what: str, loader: Any, roles: Path | None = None) -> list[Any]:
    """What each role that has something of the kind brings, in the order of the roles' names.

    :param loader: Ansible's, which trusts the templates in these files.
    """
    files = (
        loader.load_from_file(str(path), trusted_as_template=True)
        for path in sorted((roles or ROLES).glob("*/meta/brings.yml"))
    )
    return [file[what] for file in files if what in file]
