"""The gate for values that come from outside: cluster objects, hosts, logs, records and answers of the network.

Such a value is whatever its writer chose, also where Kubernetes documents a type for it. Each function takes any value
of JSON and returns a checked one. None of them raises for a bad value, except `name` and the functions for paths, whose
callers have nothing to continue with.
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
"""Characters of a text that are kept unless a caller asks for more: about 50 lines of a terminal."""
CUT = " … (cut)"
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
"""ANSI control sequences (ECMA-48): CSI, the strings OSC, DCS, SOS, PM and APC, and those of two characters.

A string ends with its line at the latest: one that nothing ends would hide all lines after it.
"""
_CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Controls, separators of lines that only some programs know, marks that turn the direction of writing round, and
halves of surrogates, which no encoding has."""
_DEEPEST = 6
"""Levels of a value of JSON that are kept."""
_LARGEST = 2**63 - 1
"""Whole numbers of JSON have no limit; those of Kubernetes are int64."""
_DIGITS = 32
"""Characters of a number: Python refuses to read more than 4,300 digits, and needs quadratic time below that."""
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*")
_NAME_LENGTH = 253
"""RFC 1123 subdomain, as Kubernetes has it for the names of most objects."""
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)")
_PART_LENGTH = 255
"""Bytes of one part of a path (NAME_MAX of Linux)."""


class UntrustedError(TrainyardError):
    """A value from outside that cannot be what it is used for."""


def clean(text: str) -> str:
    """Text without escape sequences and controls; tabs and ends of lines stay."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text))


def text(value: Any, limit: int = TEXT_LIMIT) -> str:
    """A value as bounded text without controls; empty for None and for a mapping or a list.

    :param limit: characters; a longer text ends with `CUT`.
    """
    if isinstance(value, bytes):
        value = value[: limit * 4 + 4].decode("utf-8", "replace")
    elif isinstance(value, bool) or (isinstance(value, int) and abs(value) <= _LARGEST) or isinstance(value, float):
        value = str(value)
    if not isinstance(value, str):
        return ""
    # Escape sequences make a text shorter: the limit holds for what is left, the work is bounded all the same.
    found = clean(value[: 4 * limit])
    return found if len(found) <= limit and len(value) <= 4 * limit else found[:limit] + CUT


def line(value: Any, limit: int = TEXT_LIMIT) -> str:
    """The same on one line: every run of white space is one space."""
    return " ".join(text(value, limit).split())


def number(value: Any, low: float = -1e300, high: float = 1e300) -> float | None:
    """A finite number within bounds, also from its decimal text; None where it is anything else.

    :param low: smallest value that is accepted; `high` is the largest.
    """
    if isinstance(value, str):
        found = value.strip()
        if len(found) > _DIGITS or not _NUMBER.fullmatch(found):
            return None
        value = float(found)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    # Compared before it is converted: a whole number of JSON may be larger than any float.
    return float(value) if low <= value <= high and math.isfinite(value) else None


def whole(value: Any, low: int = -_LARGEST, high: int = _LARGEST) -> int | None:
    """A whole number within bounds, also from its decimal text; None where it is anything else."""
    if isinstance(value, str):
        found = value.strip()
        if len(found) > _DIGITS or not re.fullmatch(r"[+-]?[0-9]+", found, re.ASCII):
            return None
        value = int(found)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if low <= value <= high else None


def moment(value: Any) -> datetime | None:
    """A time in RFC 3339, with its zone; None where it is anything else. Digits beyond microseconds are dropped."""
    if not isinstance(value, str) or len(value) > 40 or not _MOMENT.fullmatch(value):
        return None
    found = re.sub(r"(\.\d{1,6})\d*", lambda match: match[1].ljust(7, "0"), value.upper())
    try:
        return datetime.fromisoformat(found.replace("Z", "+00:00")).astimezone(timezone.utc)  # noqa: UP017 - Python 3.10
    except (ValueError, OverflowError):
        return None


def is_name(value: Any) -> bool:
    """Whether a value is a name of a Kubernetes object: an RFC 1123 subdomain of at most 253 characters."""
    return isinstance(value, str) and len(value) <= _NAME_LENGTH and bool(_NAME.fullmatch(value))


def name(value: Any, what: str = "name") -> str:
    """A name of a Kubernetes object.

    :param what: the value's own name, for the error.
    :raises UntrustedError: it is no RFC 1123 subdomain.
    """
    if not is_name(value):
        raise UntrustedError(f"The {what} {line(value, 80)!r} is not a name of Kubernetes.")
    return str(value)


def mapping(value: Any) -> Mapping[str, Any]:
    """A mapping; empty where the value is none."""
    return value if isinstance(value, Mapping) else {}


def items(value: Any) -> Sequence[Any]:
    """A list; empty where the value is none."""
    return value if isinstance(value, (list, tuple)) else ()


def at(value: Any, *keys: str | int) -> Any:
    """The value at a path of keys and indexes; None where one of them is not there, or is of another kind."""
    for key in keys:
        if isinstance(key, int):
            found = items(value)
            value = found[key] if -len(found) <= key < len(found) else None
        else:
            value = mapping(value).get(key)
    return value


def plain(value: Any, depth: int = 0) -> Any:
    """A value of JSON that every reader of JSON takes, with cleaned texts.

    Numbers that are not finite become null; what lies deeper than six levels is left out.

    :param depth: level at which the value begins; a negative one keeps more levels.
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
    """A path below a folder, each of whose parts is one plain name; nothing is looked at on the disk.

    :param folder: trusted; it comes from the inventory or from a program's own settings.
    :raises UntrustedError: a part is no text, empty, `.` or `..`, longer than 255 bytes, or has a slash or a control.
    """
    for part in parts:
        if not isinstance(part, str) or not _is_part(part):
            raise UntrustedError(
                f"{line(part, 80)!r} is not the name of a file below {folder}.",
                remedy="It was read from outside and is not used; remove the object that it comes from.",
            )
    return os.path.join(folder, *parts)


def open_below(folder: str, *parts: Any, flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
    """Open a file below a folder; no link is followed on the way from the folder, and none at its end.

    :param folder: trusted, as for `path_below`; it may be a link itself, and is made where a file is created.
    :param flags: as for `os.open`; with O_CREAT the folders between are made, for their owner alone.
    :return: a descriptor, which the caller closes.
    :raises UntrustedError: a part is no plain name.
    :raises OSError: the file system refuses, with ELOOP or ENOTDIR for a link.
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
        # O_NONBLOCK: a named pipe in the place of a file would hold the caller for ever.
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
