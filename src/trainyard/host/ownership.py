"""Ownership of a configuration file: this project's, a package's unedited default, or the host owner's."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from ..core.command import run
from ..core.errors import CommandError, TrainyardError
from .patterns import aside_of
from .present import read

MARKER = "Managed by trainyard"
"""Marker of our files; only files with it are removed as stale."""

BEFORE = ".before-trainyard"
"""Suffix of the copy of a file that was replaced on request."""

OWN_PLACES = ("/etc/trainyard/", "/run/trainyard/", "/var/lib/trainyard")
"""Path prefixes that only this project uses."""

REPLACE = "base_replace_files"
"""Variable that lists the files that may be replaced, for messages."""

QUERY_TIMEOUT = 60.0


def is_foreign(path: str, text: str, wanted: str | None = None, ours: Sequence[str] = ()) -> bool:
    """Return whether replacing a file would lose settings of the host's owner.

    :param text: text of the file; `wanted`: its new text, or None if not known yet.
    :param ours: line beginnings that identify this project's texts, in order, for a format without comments.
    """
    if "trainyard" in os.path.basename(path) or path.startswith(OWN_PLACES):
        return False
    if MARKER in text or text.strip() in ("", "{}"):
        return False
    if wanted is not None and (text.strip() in wanted or _is_same_json(text, wanted)):
        return False
    if ours and _has_lines(text, ours):
        return False
    return not _is_as_packaged(path)


def foreign_files(paths: Iterable[str], replace: Collection[str]) -> list[str]:
    """Return the existing files that belong to the owner and may not be replaced."""
    there = ((path, read(path)) for path in paths if path not in replace)
    return [path for path, found in there if found and is_foreign(path, found.text)]


def refusal(paths: Sequence[str]) -> TrainyardError:
    """Return the error for files of the host's owner that must not be replaced."""
    return TrainyardError(
        f"{' and '.join(paths)} {'holds' if len(paths) == 1 else 'hold'} settings that this project has not made.",
        remedy=f"Copy the settings that you need to the inventory. Then add {' and '.join(paths)} to {REPLACE}: "
        f"the old file is kept next to the new one as NAME{BEFORE}.",
    )


def kept_as(path: str) -> str:
    """Return the path for a copy of the old file: next to a link's target, and never over an older copy."""
    return aside_of(os.path.realpath(path), BEFORE)


def _has_lines(text: str, beginnings: Sequence[str]) -> bool:
    lines = iter(text.splitlines())
    return all(any(line.startswith(beginning) for line in lines) for beginning in beginnings)


def _is_same_json(text: str, wanted: str) -> bool:
    first, second = _json(text), _json(wanted)
    return first is not None and first == second


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _is_as_packaged(path: str) -> bool:
    """Return whether a file is an unedited configuration file of a package, according to dpkg."""
    try:
        rows = run(["dpkg-query", "--show", "--showformat=${Conffiles}\n"], timeout=QUERY_TIMEOUT).stdout.splitlines()
    except CommandError:
        return False
    real = os.path.realpath(path)
    known = {(row.split()[0], row.split()[1]) for row in rows if len(row.split()) > 1}
    with open(real, "rb") as stream:
        digest = hashlib.md5(stream.read(), usedforsecurity=False).hexdigest()
    return any((name, digest) in known for name in (path, real))
