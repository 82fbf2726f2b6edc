"""Refuse files in an inventory folder that Ansible would parse although they were not written as an inventory.

Ansible parses each file of the folder, except hidden files and those with a suffix from its setting
`inventory_ignore_extensions`, which lacks `.log`. Values of an inventory are trusted templates, so a log that a program
writes there would run code at the next call.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from .site_model import Problem, Site

_NOT_READ = {"group_vars", "host_vars", "vars_plugins"}
"""Folders that Ansible does not parse as inventories. From the first two it reads .yml, .yaml, .json and no suffix."""
_MEANT = (".yml", ".yaml", ".json")


def unexpected_files(sources: Collection[str], ignored: Collection[str], patterns: Collection[str] = ()) -> list[str]:
    """Return the sorted paths of files that are logs, or that are not `hosts*`, YAML, JSON or executable.

    :param sources: values of `-i`; only folders are checked.
    :param ignored: suffixes that Ansible ignores (`inventory_ignore_extensions`).
    :param patterns: regular expressions of names that Ansible ignores (`inventory_ignore_patterns`).
    """
    skip = re.compile("|".join([r"^\.", *(f"{re.escape(each)}$" for each in ignored), *patterns]))
    return sorted(str(path) for source in sources for path in _files(Path(source), skip) if not _is_meant(path))


def unexpected_files_of_call() -> list[str]:
    """Return the unexpected files in the inventory of the running Ansible program, by its settings."""
    from ansible import constants, context

    sources = context.CLIARGS.get("inventory") or ()
    return unexpected_files(sources, constants.INVENTORY_IGNORE_EXTS, constants.INVENTORY_IGNORE_PATTERNS)


def _files(folder: Path, skip: re.Pattern[str]) -> Iterator[Path]:
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if path.name in _NOT_READ or skip.search(path.name):
            continue
        if path.is_dir():
            yield from _files(path, skip)
        else:
            yield path


def _is_meant(path: Path) -> bool:
    if path.name.lower().endswith(".log"):
        # The log of a run with the name hosts begins like an inventory.
        return False
    return path.name.startswith("hosts") or path.suffix in _MEANT or os.access(path, os.X_OK)


def problems_of(paths: Collection[str]) -> Iterator[Problem]:
    """Yield a problem for each unexpected file."""
    for path in paths:
        yield Problem(
            "inventory file",
            path,
            "Ansible would parse it and trust its values",
            "Move it out of the inventory's folder, or rename it to *.yml. If you did not write it, first read the "
            "entry of CHANGELOG.md on logs outside of their folder.",
        )


def check_files(site: Site) -> Iterator[Problem]:
    """Refuse unexpected files. If ansible.cfg enables the callback `inventory_files`, it refuses them earlier."""
    yield from problems_of(site.unexpected_files)


INVENTORY_FILE_RULES = (check_files,)
