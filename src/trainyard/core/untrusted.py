"""Validation of untrusted input: cluster objects, hosts, logs, records and network responses.

The writer of such a value chooses it freely, even if Kubernetes documents a type for it. Each function takes any JSON
value and returns a checked one. Invalid values raise no error, except in `name` and the path functions, whose callers
could not continue.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from .errors import TrainyardError

TEXT_LIMIT = 4_096
"""Default limit of a text in characters: about 50 lines of a terminal."""
CUT = " … (cut)"
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
"""ANSI control sequences (ECMA-48): CSI, the strings OSC, DCS, SOS, PM and APC, and two-character sequences.

A string ends at the end of its line at the latest; an unterminated one would hide all following lines.
"""
_CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters, Unicode line separators, marks that change the writing direction, and lone surrogates, which
cannot be encoded."""
_DEEPEST = 6
"""Nesting levels of a JSON value that are kept."""
_LARGEST = 2**63 - 1
"""JSON integers are unbounded; those of Kubernetes are int64."""
_DIGITS = 32
"""Longest number in characters. Python refuses more than 4,300 digits, and needs quadratic time below that."""
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*")
_NAME_LENGTH = 253
"""Length of an RFC 1123 subdomain, the form of most Kubernetes object names."""
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)")
_PART_LENGTH = 255
"""Longest path component in bytes (NAME_MAX of Linux)."""


class UntrustedError(TrainyardError):
    """An untrusted value that is invalid for its use."""


def clean(text: str) -> str:
    """Return the text without escape sequences and control characters; tabs and newlines are kept."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text))


def text(value: Any, limit: int = TEXT_LIMIT) -> str:
    """Return a value as bounded text without control characters; empty for None, mappings and lists.

    :param limit: characters; a longer text is cut and ends with `CUT`.
    """
    if isinstance(value, bytes):
        value = value[: limit * 4 + 4].decode("utf-8", "replace")
    elif isinstance(value, bool) or (isinstance(value, int) and abs(value) <= _LARGEST) or isinstance(value, float):
        value = str(value)
    if not isinstance(value, str):
        return ""
    # Cleaning shortens a text, so the limit applies afterwards. Cutting before it bounds the work.
    found = clean(value[: 4 * limit])
    return found if len(found) <= limit and len(value) <= 4 * limit else found[:limit] + CUT


def line(value: Any, limit: int = TEXT_LIMIT) -> str:
    """Return the same as `text` on one line: each run of white space becomes one space."""
    return " ".join(text(value, limit).split())


def number(value: Any, low: float = -1e300, high: float = 1e300) -> float | None:
    """Return a finite number within bounds, also from decimal text; None for any other value.

    :param low: smallest accepted value; `high` is the largest.
    """
    if isinstance(value, str):
        found = value.strip()
        if len(found) > _DIGITS or not _NUMBER.fullmatch(found):
            return None
        value = float(found)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    # Compare before converting: a JSON integer may be larger than any float.
    return float(value) if low <= value <= high and math.isfinite(value) else None


def whole(value: Any, low: int = -_LARGEST, high: int = _LARGEST) -> int | None:
    """Return an integer within bounds, also from decimal text; None for any other value."""
    if isinstance(value, str):
        found = value.strip()
        if len(found) > _DIGITS or not re.fullmatch(r"[+-]?[0-9]+", found, re.ASCII):
            return None
        value = int(found)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if low <= value <= high else None


def moment(value: Any) -> datetime | None:
    """Parse an RFC 3339 time with its zone; None for any other value. Digits beyond microseconds are dropped."""
    if not isinstance(value, str) or len(value) > 40 or not _MOMENT.fullmatch(value):
        return None
    found = re.sub(r"(\.\d{1,6})\d*", lambda match: match[1].ljust(7, "0"), value.upper())
    try:
        return datetime.fromisoformat(found.replace("Z", "+00:00")).astimezone(timezone.utc)  # noqa: UP017 - Python 3.10
    except (ValueError, OverflowError):
        return None


def is_name(value: Any) -> bool:
    """Return whether a value is a valid Kubernetes object name: an RFC 1123 subdomain of at most 253 characters."""
    return isinstance(value, str) and len(value) <= _NAME_LENGTH and bool(_NAME.fullmatch(value))


def name(value: Any, what: str = "name") -> str:
    """Return a checked Kubernetes object name.

    :param what: description of the value, for the error.
    :raises UntrustedError: the value is not an RFC 1123 subdomain.
    """
    if not is_name(value):
        raise UntrustedError(f"The {what} {line(value, 80)!r} is not a valid Kubernetes name.")
    return str(value)


def mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a mapping, otherwise an empty one."""
    return value if isinstance(value, Mapping) else {}


def items(value: Any) -> Sequence[Any]:
    """Return the value if it is a list, otherwise an empty sequence."""
    return value if isinstance(value, (list, tuple)) else ()


def at(value: Any, *keys: str | int) -> Any:
    """Return the value at a path of keys and indexes; None if one of them is missing or has another type."""
    for key in keys:
        if isinstance(key, int):
            found = items(value)
            value = found[key] if -len(found) <= key < len(found) else None
        else:
            value = mapping(value).get(key)
    return value


def plain(value: Any, depth: int = 0) -> Any:
    """Return a JSON value that any JSON parser accepts, with cleaned texts.

    Numbers that are not finite, and values nested deeper than six levels, become null.

    :param depth: nesting level of the value itself; a negative one keeps more levels.
    """
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {clean(str(key)): plain(each, depth + 1) for key, each in value.items()} if depth < _DEEPEST else None
    if isinstance(value, (list, tuple)):
        return [plain(each, depth + 1) for each in value] if depth < _DEEPEST else None
    return value


def path_below(folder: str, *parts: Any) -> str:
    """Join a folder and plain names to a path, without accessing the disk.

    :param folder: trusted; it comes from the inventory or from a program's own settings.
    :raises UntrustedError: a part is not text, is empty, `.` or `..`, is longer than 255 bytes, or contains a slash or
        a control character.
    """
    for part in parts:
        if not isinstance(part, str) or not _is_part(part):
            raise UntrustedError(
                f"{line(part, 80)!r} is not a valid file name below {folder}.",
                remedy="Remove the object that contains this name.",
            )
    return os.path.join(folder, *parts)


def open_below(folder: str, *parts: Any, flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
    """Open a file below a folder without following any link below that folder.

    :param folder: trusted, as for `path_below`; it may itself be a link, and is created if `flags` has O_CREAT.
    :param flags: as for `os.open`; with O_CREAT, missing folders are created with mode 0700.
    :return: a descriptor, which the caller closes.
    :raises UntrustedError: a part is not a plain name.
    :raises OSError: the file system refuses; a link gives ELOOP or ENOTDIR.
    """
    path_below(folder, *parts)
    create = bool(flags & os.O_CREAT)
    if create:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            if create:
                _make_folder(part, descriptor)
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        # O_NONBLOCK: opening a named pipe would otherwise block for ever.
        return os.open(parts[-1], flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, mode, dir_fd=descriptor)
    finally:
        os.close(descriptor)


def _make_folder(part: str, above: int) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(part, 0o700, dir_fd=above)


def _is_part(part: str) -> bool:
    try:
        size = len(os.fsencode(part))
    except UnicodeEncodeError:
        return False
    return part not in ("", ".", "..") and size <= _PART_LENGTH and not set(part) & set("/\t\n") and clean(part) == part
