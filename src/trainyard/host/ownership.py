"""Ownership of a configuration file: this project's, a package's unedited default, or the host owner's.

Parts: text files and our block in shared ones; file names; ownership. The names part matches glob patterns, and names
files that are set aside.
"""

from __future__ import annotations

import fnmatch
import glob
import hashlib
import itertools
import json
import os
import stat
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..core import files
from ..core.command import run
from ..core.errors import CommandError, TrainyardError
from .preflight_checks import Reason, reason

BLOCK_BEGIN, BLOCK_END = "# BEGIN trainyard", "# END trainyard"


@dataclass(frozen=True)
class Found:
    """An existing file: text, permission bits, user ID and group ID."""

    text: str
    mode: int
    owner: int
    group: int


def read(path: str) -> Found | None:
    """Read a file; None if it does not exist. No link of another user is followed.

    :raises TrainyardError: the path is a folder, has a file in place of a folder, or crosses another user's link.
    """
    try:
        found = files.read(path)
    except (IsADirectoryError, NotADirectoryError) as error:
        raise TrainyardError(
            f"{path} cannot be read: {error.strerror}.", remedy="Move the conflicting file or folder away."
        ) from error
    return Found(found[0], stat.S_IMODE(found[1].st_mode), found[1].st_uid, found[1].st_gid) if found else None


def with_block(text: str, block: str) -> str:
    """Return the text with its marked block replaced, appended, or (empty block) removed."""
    lines = text.splitlines(keepends=True)
    begin = next((i for i, line in enumerate(lines) if line.rstrip() == BLOCK_BEGIN), None)
    end = next((i for i, line in enumerate(lines) if line.rstrip() == BLOCK_END), None)
    body = [f"{BLOCK_BEGIN}\n", block.rstrip("\n") + "\n", f"{BLOCK_END}\n"] if block.strip() else []
    if begin is not None and end is not None and begin < end:
        return "".join(lines[:begin] + body + lines[end + 1 :])
    if lines and body and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return "".join(lines + body)


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


MARKER = "Managed by trainyard"
"""Marker of our files; only files with it are removed as stale."""

BEFORE = ".before-trainyard"
"""Suffix of the copy of a file that was replaced on request."""

OWN_PLACES = ("/etc/trainyard/", "/run/trainyard/", "/var/lib/trainyard")
"""Path prefixes that only this project uses."""

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


def refusal(paths: Sequence[str]) -> Reason:
    """Return the reason for files of the host's owner that must not be replaced."""
    return reason("foreign_file", files=" and ".join(paths), hold="holds" if len(paths) == 1 else "hold")


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
