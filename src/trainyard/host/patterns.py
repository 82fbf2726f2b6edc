"""File names: matching of glob patterns, and names for files that are set aside."""

from __future__ import annotations

import fnmatch
import glob
import itertools
import os
from collections.abc import Collection, Sequence

ASIDE_SUFFIX = ".disabled"
"""apt, and most programs that read a directory, silently ignore names with this suffix."""


def matches(patterns: Sequence[str], wanted: Collection[str] = ()) -> list[str]:
    """Return the existing paths that match a pattern, except the wanted ones."""
    return sorted({path for pattern in patterns for path in glob.glob(pattern)} - set(wanted))


def is_match(path: str, pattern: str) -> bool:
    """Return whether glob would match the path: its `*` neither crosses a slash nor matches hidden files."""
    names, wanted = path.split("/"), pattern.split("/")
    return len(names) == len(wanted) and all(
        fnmatch.fnmatchcase(name, part) and (part.startswith(".") or not name.startswith("."))
        for name, part in zip(names, wanted, strict=True)
    )


def aside_of(path: str, suffix: str = ASIDE_SUFFIX) -> str:
    """Return the path for setting a file aside, never one that already exists."""
    names = itertools.chain([f"{path}{suffix}"], (f"{path}.{n}{suffix}" for n in itertools.count(2)))
    return next(name for name in names if not os.path.lexists(name))
