"""Text that comes from a run: lines of bounded length, without what a terminal or a browser might take for commands."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

LINE_BYTES = 8_192
"""Longer lines of a log are cut here: nobody reads them, and 20 browsers would have to hold them."""
CUT = " … (cut)"
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
"""ANSI: CSI, OSC (title of the window, links), and those of two characters (ECMA-48)."""
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Controls, marks that turn the direction of writing round, and halves of surrogates, which no encoding has."""
_DEEPEST = 6
"""Of what a run says."""
VIEW_DEPTH = -10
"""Where a view of ours begins, which is deeper."""


class Splitter:
    """Bytes as they come, in lines; of one that is longer than the limit the rest is thrown away as it comes.

    :param limit: bytes of a line that are kept.
    """

    def __init__(self, limit: int = LINE_BYTES) -> None:
        self._limit = limit
        self._begun = bytearray()
        self._too_long = False

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bool]]:
        """Lines that are complete now, without their ends, and whether each was cut."""
        *ended, rest = data.split(b"\n")
        for part in ended:
            self._add(part)
            yield self._take()
        self._add(rest)

    def rest(self) -> Iterator[tuple[bytes, bool]]:
        """What came after the last end of a line, when nothing more will come."""
        if self._begun or self._too_long:
            yield self._take()

    def _add(self, part: bytes) -> None:
        room = self._limit - len(self._begun)
        self._begun += part[:room]
        self._too_long |= len(part) > room

    def _take(self) -> tuple[bytes, bool]:
        line, cut = bytes(self._begun), self._too_long
        self._begun.clear()
        self._too_long = False
        return line, cut


def readable(line: bytes, cut: bool = False) -> str:
    """A line as people read it; invalid UTF-8 is shown as such, colours and other commands to a terminal are left out.

    Of a line that overwrites itself (progress bars, by carriage returns) the last writing is what is left.
    """
    text = line.decode("utf-8", "replace").rstrip("\r").rpartition("\r")[2]
    return clean(text) + (CUT if cut else "")


def clean(text: str) -> str:
    """Text without escape sequences and controls; tabs and ends of lines stay."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text))


def plain(value: Any, depth: int = 0) -> Any:
    """A value of JSON that every reader of JSON takes: numbers that are not finite become null, text is cleaned, and
    what is nested too deeply is left out."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {clean(str(key)): plain(each, depth + 1) for key, each in value.items()} if depth < _DEEPEST else None
    if isinstance(value, list):
        return [plain(each, depth + 1) for each in value] if depth < _DEEPEST else None
    return value
