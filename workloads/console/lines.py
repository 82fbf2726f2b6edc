"""Lines of a run's log: of bounded length, without commands to a terminal or a browser."""

from __future__ import annotations

from collections.abc import Iterator

from ansible.module_utils.trainyard.core.untrusted import CUT, clean

LINE_BYTES = 8_192
"""Longer lines of a log are cut here: nobody reads them, and 20 browsers would have to hold them."""
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
