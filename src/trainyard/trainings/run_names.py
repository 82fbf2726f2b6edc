"""The name of a run: its own, that of its folder of code, or its workload's."""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .checks import NAME_LENGTH

OWN = "own"
"""The workload that runs programs of a user. Two of them are two runs, each with files of its own."""
NAMELESS = "its name has neither a letter of a to z nor a digit to name the run by"
"""The fault of a folder of code that gives a run no name."""
_DIGEST_LENGTH = 8


def run_name(wanted: Mapping[str, Any]) -> str:
    """The name of a run. Of a folder that gives none it is the folder's own, which the checks of names refuse."""
    if wanted.get("run"):
        return str(wanted["run"])
    if folder := naming_folder(wanted):
        return name_of_folder(folder) or _base(folder)
    return str(wanted.get("workload", "")).replace("_", "-")


def naming_folder(wanted: Mapping[str, Any]) -> str:
    """The folder of code that names a run; empty where the description names it, or it brings no folder."""
    code = wanted.get("code")
    if wanted.get("run") or wanted.get("workload") != OWN or not isinstance(code, Mapping):
        return ""
    return str(code.get("folder") or "")


def name_of_folder(folder: str) -> str:
    """The name of a folder as Kubernetes takes names; empty where it has neither a letter of a to z nor a digit.

    :param folder: below `~`, or relative to the folder from which Ansible was called.
    """
    base = _base(folder)
    plain = unicodedata.normalize("NFKD", base).encode("ascii", "ignore").decode().lower()
    name = re.sub("[^a-z0-9]+", "-", plain).strip("-")
    if name[:1].isdigit():
        name = f"{OWN}-{name}"
    if len(name) > NAME_LENGTH:
        # Two long names that begin alike stay two.
        digest = hashlib.sha256(base.encode("utf-8", "surrogateescape")).hexdigest()[:_DIGEST_LENGTH]
        name = f"{name[: NAME_LENGTH - _DIGEST_LENGTH - 1].rstrip('-')}-{digest}"
    return name


def twice(wanted: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Names that more than one run has."""
    names = [run_name(each) for each in wanted]
    return (name for name in dict.fromkeys(names) if names.count(name) > 1)


def _base(folder: str) -> str:
    return os.path.basename(os.path.abspath(os.path.expanduser(folder)))
