"""The name of a run: from its description, its code folder or its workload."""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .checks import NAME_LENGTH

OWN = "own"
"""The workload for programs of users. Two programs are two runs, each with its own files."""
NAMELESS = "its name has no letter from a to z and no digit, so the run cannot be named after it"
"""The fault of a code folder that gives a run no name."""
_DIGEST_LENGTH = 8


def run_name(wanted: Mapping[str, Any]) -> str:
    """Return the name of a run. If its code folder gives none, return the folder's own, which the checks refuse."""
    if wanted.get("run"):
        return str(wanted["run"])
    if folder := naming_folder(wanted):
        return name_of_folder(folder) or _base(folder)
    return str(wanted.get("workload", "")).replace("_", "-")


def naming_folder(wanted: Mapping[str, Any]) -> str:
    """Return the code folder that names a run; empty if the description names it, or it has no code folder."""
    code = wanted.get("code")
    if wanted.get("run") or wanted.get("workload") != OWN or not isinstance(code, Mapping):
        return ""
    return str(code.get("folder") or "")


def name_of_folder(folder: str) -> str:
    """Return the name of a folder as a valid Kubernetes name; empty if it has no letter from a to z and no digit.

    :param folder: path below `~`, or relative to Ansible's working directory.
    """
    base = _base(folder)
    plain = unicodedata.normalize("NFKD", base).encode("ascii", "ignore").decode().lower()
    name = re.sub("[^a-z0-9]+", "-", plain).strip("-")
    if name[:1].isdigit():
        name = f"{OWN}-{name}"
    if len(name) > NAME_LENGTH:
        # The digest distinguishes long names with the same beginning.
        digest = hashlib.sha256(base.encode("utf-8", "surrogateescape")).hexdigest()[:_DIGEST_LENGTH]
        name = f"{name[: NAME_LENGTH - _DIGEST_LENGTH - 1].rstrip('-')}-{digest}"
    return name


def twice(wanted: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the names that more than one run has."""
    names = [run_name(each) for each in wanted]
    return (name for name in dict.fromkeys(names) if names.count(name) > 1)


def _base(folder: str) -> str:
    return os.path.basename(os.path.abspath(os.path.expanduser(folder)))
