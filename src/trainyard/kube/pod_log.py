"""Parse a pod's log into lines: any bytes, each line once, bounded memory. Nothing here calls a server.

A program may write anything: progress bars with carriage returns, form feeds, binary data, a line of many MiB. Only a
line feed ends a line, as for the kubelet, which prefixes each line with an RFC 3339 time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from ..core.untrusted import CUT, clean, moment

LINE_BYTES = 16 * 2**20
"""A longer line is split into pieces of this size, so that a reader holds only one of them in memory."""
TEXT_BYTES = 8 * 2**20
"""Bytes of the end of a log that are returned as one text."""
_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", re.ASCII)
"""RFC 3339 as the kubelet writes it (RFC3339NanoFixed in its types), in the time zone of the node."""
_STAMP_BYTES = 36
"""Length of the longest time, with nanoseconds, a zone and the following space."""
_NO_LOG = re.compile(
    r'container "[^"]*" in pod "[^"]*" (?:is waiting to start|is not available|is terminated|not found)'
)
"""The kubelet's message for a container without a log (validateContainerLogStatus in its kubelet_pods.go)."""


@dataclass(frozen=True)
class Line:
    """A line of a log, or a piece of a line that is too long.

    :param text: the bytes without the line feed.
    :param stamp: time as written by the server. A text without a time gets that of the previous line; empty for none.
    :param moment: the same time in nanoseconds since the epoch.
    :param ended: whether the line is complete; otherwise more of it may follow.
    :param cut: whether earlier bytes of the line are not in this text.
    """

    text: bytes
    stamp: str = ""
    moment: int = 0
    ended: bool = True
    cut: bool = False


class Lines:
    """A splitter of a log's bytes into lines.

    :param limit: bytes of a line that are held in memory.
    :param stamped: whether the server prefixes each line with a time.
    :param last: return only the last bytes of a longer line; otherwise return all of it in pieces.
    """

    def __init__(self, limit: int = LINE_BYTES, *, stamped: bool = True, last: bool = False) -> None:
        self._limit, self._stamped, self._last = limit, stamped, last
        self._begun = bytearray()
        self._stamp, self._moment = "", 0
        self._at_begin, self._cut = True, False

    def feed(self, data: bytes) -> Iterator[Line]:
        """Add bytes and yield the lines that are now complete."""
        *ended, rest = data.split(b"\n")
        for part in ended:
            yield from self._add(part)
            yield self._take(ended=True)
        yield from self._add(rest)

    def rest(self) -> Iterator[Line]:
        """Yield the incomplete last line, after the end of the input."""
        if self._begun or self._cut:
            yield self._take(ended=False)

    def _add(self, part: bytes) -> Iterator[Line]:
        self._begun += part
        if len(self._begun) >= _STAMP_BYTES:
            self._read_stamp()
        if self._last:
            if len(self._begun) > 2 * self._limit:
                self._drop()
            return
        while len(self._begun) > self._limit:
            text = bytes(self._begun[: self._limit])
            del self._begun[: self._limit]
            yield Line(text, self._stamp, self._moment, ended=False, cut=self._cut)
            self._cut = True

    def _take(self, *, ended: bool) -> Line:
        self._read_stamp()
        if len(self._begun) > self._limit:
            self._drop()
        line = Line(bytes(self._begun), self._stamp, self._moment, ended, self._cut)
        self._begun.clear()
        self._at_begin, self._cut = True, False
        return line

    def _drop(self) -> None:
        del self._begun[: -self._limit]
        self._cut = True

    def _read_stamp(self) -> None:
        """Strip the time from the start of a line. A line without one keeps that of the previous line."""
        if not (self._stamped and self._at_begin):
            return
        self._at_begin = False
        head = self._begun[:_STAMP_BYTES].partition(b" ")[0].decode("latin-1")
        found = nanoseconds(head)
        if found is not None:
            self._stamp, self._moment = head, found
            del self._begun[: len(head) + 1]


class Position:
    """The position up to which a log was read, for a server that resumes only at whole seconds.

    Such a server repeats the lines of the last second. Times are compared as instants, because the time zone of a node
    may change. Lines with the last time are counted, because several lines may have the same time.
    """

    def __init__(self) -> None:
        self.stamp = ""
        """Time of the last line that was read, from which to resume; empty before the first line."""
        self._moment = self._count = self._repeated = 0
        self._passed = True
        self._open: tuple[int, int] = (0, 0)
        self.found = True
        """Whether the response contained the position or an earlier line. Otherwise lines may be missing in between."""

    def begin(self) -> None:
        """Start a new response, which begins in the second of the last line, or later."""
        self._repeated, self._passed = self._count, not self.stamp
        self.found = self._passed

    def misses(self, line: Line) -> bool:
        """Return whether a response that begins with this line may lack unread lines."""
        return not self.found and line.moment > self._moment

    def is_new(self, line: Line) -> bool:
        """Return whether a line was not read before, and record a new one as the last line read."""
        if not self._is_after(line):
            return False
        self._passed = True
        if line.moment > self._moment or not self.stamp:
            self.stamp, self._moment, self._count = line.stamp, line.moment, 1
        elif line.moment == self._moment:
            self._count += 1
        # Otherwise the node's clock was set back within this response. Lines after a new line are also new.
        return True

    def new_bytes(self, line: Line) -> bytes:
        """Return the bytes of a new line that were not read while it was incomplete, with its line feed."""
        begun, size = self._open
        self._open = (0, 0)
        text = line.text[size:] if begun == line.moment else line.text
        return text + (b"\n" if line.ended else b"")

    def open_bytes(self, line: Line) -> bytes:
        """Return the unread bytes of an incomplete line at the end of a response.

        The position stays before the line, because the next response repeats all of it.
        """
        if line.cut or not self._is_after(line):
            return b""
        text = self.new_bytes(line)
        self._open = (line.moment, len(line.text))
        return text

    def _is_after(self, line: Line) -> bool:
        if not line.stamp:
            return False
        if not self._passed:
            self.found |= line.moment <= self._moment
            if line.moment < self._moment:
                return False
            if line.moment == self._moment and self._repeated:
                self._repeated -= 1
                return False
        return True


@lru_cache(maxsize=64)
def _second(text: str) -> int | None:
    """Parse a time to seconds since the epoch. Cached, because most lines share the second of the previous line."""
    found = moment(text)
    return None if found is None else int(found.timestamp())


def nanoseconds(stamp: str) -> int | None:
    """Convert an RFC 3339 time to nanoseconds since the epoch; None if the text is not a time."""
    match = _STAMP.fullmatch(stamp)
    second = _second(match[1] + match[3]) if match else None
    return None if match is None or second is None else second * 10**9 + int((match[2] or "0").ljust(9, "0"))


def last_state(text: bytes) -> bytes:
    """Return the last state of a line that a progress bar overwrites with carriage returns."""
    return text.rstrip(b"\r").rpartition(b"\r")[2]


def readable(text: bytes, cut: bool = False) -> str:
    """Return a line for display: its last state, without colours and other terminal escapes.

    Invalid UTF-8 becomes the replacement character.
    """
    return clean(last_state(text).decode("utf-8", "replace")) + (CUT if cut else "")


def last_lines(text: str, count: int) -> list[str]:
    """Return the last non-empty lines of a log for display."""
    found: list[str] = []
    for each in reversed(text.split("\n")):
        line = readable(each.encode("utf-8", "replace"))
        if line.strip():
            found.append(line)
        if len(found) == count:
            break
    return found[::-1]


def end_of(pieces: Iterable[bytes]) -> str:
    """Return the last `TEXT_BYTES` of a log as text."""
    found = bytearray()
    for piece in pieces:
        found += piece
        if len(found) > 2 * TEXT_BYTES:
            del found[:-TEXT_BYTES]
    return found[-TEXT_BYTES:].decode("utf-8", "replace")


def says_no_log(status: int, text: str) -> bool:
    """Return whether a response says that a container has no log, for example because it has not started."""
    return status == 400 and _NO_LOG.search(text) is not None
