"""The path and the content of the lock file, for lookups."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from ansible.errors import AnsibleLookupError

from ..project import ROOT

VARIABLE = "bundle_lock"
PROJECT = ROOT


def path_of(named: object, project: Path = PROJECT) -> Path:
    """Return the path of the lock: the value of `bundle_lock` if a site sets it, else the lock in the project's root.

    :param named: the value, templated or not; the role's own default needs no templating.
    """
    is_own = isinstance(named, str) and named and "bundle_project" not in named
    return Path(str(named)).expanduser() if is_own else project / "bundle.lock.yml"


def artefacts(variables: dict[str, Any] | None, templar: Any) -> dict[str, dict[str, Any]]:
    """Return the entries by name of the lock in `bundle_lock`, else of the checkout's lock.

    :param variables: of the host of the lookup; the role's own default names the checkout's lock.
    """
    named = (variables or {}).get(VARIABLE, "")
    path = path_of(named if "bundle_project" in str(named) else templar.template(named))
    try:
        return _read(path, path.stat().st_mtime_ns)
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise AnsibleLookupError(f"The lock file {path} ({VARIABLE}) cannot be read: {error}") from error


def entry(name: str, variables: dict[str, Any] | None, templar: Any) -> dict[str, Any]:
    """Return one entry.

    :raises AnsibleLookupError: there is no entry with this name.
    """
    found = artefacts(variables, templar)
    if name not in found:
        raise AnsibleLookupError(f"The lock file has no artefact {name}.")
    return found[name]


def versions(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the versions: artefact -> its version without a leading "v"."""
    return {name: str(each["version"]).removeprefix("v") for name, each in entries.items() if "version" in each}


def cuda(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the versions of CUDA: image -> its version, without images that have none.

    The version is the build argument that becomes the image's label, or that of its base.
    """

    def of(name: str) -> str:
        entry = entries.get(name) or {}
        base = str(entry.get("base", "")).removeprefix("artefact:").partition("/")[0]
        return str((entry.get("arguments") or {}).get("CUDA") or (of(base) if base else ""))

    return {name: version for name in entries if (version := of(name))}


@lru_cache(maxsize=2)
def _read(path: Path, changed: int) -> dict[str, dict[str, Any]]:
    return yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))[  # noqa: S506 - both loaders are safe ones
        "artefacts"
    ]
