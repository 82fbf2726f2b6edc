"""Names of files: what a glob pattern finds, and where a file is put aside."""

from __future__ import annotations

import fnmatch
import glob
import itertools
import os
from collections.abc import Collection, Sequence

ASIDE_SUFFIX = ".disabled"
"""apt, and most programs that read a directory, ignore names with this ending without a notice."""


def matches(patterns: Sequence[str], wanted: Collection[str] = ()) -> list[str]:
    """The existing paths that a pattern finds, without the wanted ones."""
    return sorted({path for pattern in patterns for path in glob.glob(pattern)} - set(wanted))


def is_match(path: str, pattern: str) -> bool:
    """Whether glob would find the path: its `*` neither crosses a slash nor finds hidden files."""
    names, wanted = path.split("/"), pattern.split("/")
    return len(names) == len(wanted) and all(
        fnmatch.fnmatchcase(name, part) and (part.startswith(".") or not name.startswith("."))
        for name, part in zip(names, wanted, strict=True)
    )


def aside_of(path: str, suffix: str = ASIDE_SUFFIX) -> str:
    """Where a file is put aside: never over one that was put there before."""
    names = itertools.chain([f"{path}{suffix}"], (f"{path}.{n}{suffix}" for n in itertools.count(2)))
    return next(name for name in names if not os.path.lexists(name))
