"""Lines of a pod's log: any bytes, each line once, and little memory. Nothing here calls a server.

A program writes whatever it likes: bars that overwrite themselves with carriage returns, form feeds, bytes that are no
text, a line of many MiB. Only a line feed ends a line, as for the kubelet, which puts a time in RFC 3339 before each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from ..core.untrusted import CUT, clean, moment

LINE_BYTES = 16 * 2**20
"""A longer line comes in pieces of this size: a reader holds one of them in memory."""
TEXT_BYTES = 8 * 2**20
"""Of the end of a log that is returned as one text."""
_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", re.ASCII)
"""RFC 3339 as the kubelet writes it (RFC3339NanoFixed of its types); its zone is that of the node."""
_STAMP_BYTES = 36
"""Of the longest time, with nanoseconds and a zone, and the space behind it."""
_NO_LOG = re.compile(
    r'container "[^"]*" in pod "[^"]*" (?:is waiting to start|is not available|is terminated|not found)'
)
"""How a kubelet says that a container has no log (validateContainerLogStatus in its kubelet_pods.go)."""


@dataclass(frozen=True)
class Line:
    """A line of a log, or a piece of one that is too long.

    :param text: without its end.
    :param stamp: its time as the server wrote it, which a text without a time has from the line before; empty for none.
    :param moment: the same in nanoseconds since the epoch.
    :param ended: whether its end follows; else more of it may come.
    :param cut: whether bytes of the line lie before this text.
    """

    text: bytes
    stamp: str = ""
    moment: int = 0
    ended: bool = True
    cut: bool = False


class Lines:
    """Bytes of a log as they come, in lines.

    :param limit: bytes of a line that are held.
    :param stamped: whether the server puts a time before each line.
    :param last: of a longer line only its last bytes are returned; else all of it in pieces.
    """

    def __init__(self, limit: int = LINE_BYTES, *, stamped: bool = True, last: bool = False) -> None:
        self._limit, self._stamped, self._last = limit, stamped, last
        self._begun = bytearray()
        self._stamp, self._moment = "", 0
        self._at_begin, self._cut = True, False

    def feed(self, data: bytes) -> Iterator[Line]:
        """The lines that are complete now."""
        *ended, rest = data.split(b"\n")
        for part in ended:
            yield from self._add(part)
            yield self._take(ended=True)
        yield from self._add(rest)

    def rest(self) -> Iterator[Line]:
        """What came after the last end of a line, when nothing more will come."""
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
        """Take the time off the begin of a line; what has none belongs to the line before."""
        if not (self._stamped and self._at_begin):
            return
        self._at_begin = False
        head = self._begun[:_STAMP_BYTES].partition(b" ")[0].decode("latin-1")
        found = nanoseconds(head)
        if found is not None:
            self._stamp, self._moment = head, found
            del self._begun[: len(head) + 1]


class Position:
    """Up to which line a log was read, for a server that knows whole seconds only.

    Such a server repeats the lines of the last second. Times of lines are compared as times, since the zone of a node
    may change, and the number of lines that have the last time is counted, since several may have the same.
    """

    def __init__(self) -> None:
        self.stamp = ""
        """Time of the last line that was read, to be asked for; empty before the first."""
        self._moment = self._count = self._repeated = 0
        self._passed = True
        self._open: tuple[int, int] = (0, 0)
        self.found = True
        """Whether the answer has shown the place, or a line before it. Else lines may lie between."""

    def begin(self) -> None:
        """A new answer begins with the second of the last line, or later."""
        self._repeated, self._passed = self._count, not self.stamp
        self.found = self._passed

    def misses(self, line: Line) -> bool:
        """Whether an answer that begins with this line may leave out lines that were not read yet."""
        return not self.found and line.moment > self._moment

    def is_new(self, line: Line) -> bool:
        """Whether a line was not read before. One that is new becomes the last that was read."""
        if not self._is_after(line):
            return False
        self._passed = True
        if line.moment > self._moment or not self.stamp:
            self.stamp, self._moment, self._count = line.stamp, line.moment, 1
        elif line.moment == self._moment:
            self._count += 1
        # Else the clock of its node was set back within this answer: what comes after a new line is new, too.
        return True

    def new_bytes(self, line: Line) -> bytes:
        """The bytes of a new line that were not read while it was open, with its end."""
        begun, size = self._open
        self._open = (0, 0)
        text = line.text[size:] if begun == line.moment else line.text
        return text + (b"\n" if line.ended else b"")

    def open_bytes(self, line: Line) -> bytes:
        """The bytes of a line that has not ended yet, at the end of an answer, that were not read before.

        The place stays before the line: another answer has all of it again.
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
    """Lines come in order, so that most have the second of the line before."""
    found = moment(text)
    return None if found is None else int(found.timestamp())


def nanoseconds(stamp: str) -> int | None:
    """A time in RFC 3339 in nanoseconds since the epoch; None where the text is none."""
    match = _STAMP.fullmatch(stamp)
    second = _second(match[1] + match[3]) if match else None
    return None if match is None or second is None else second * 10**9 + int((match[2] or "0").ljust(9, "0"))


def last_state(text: bytes) -> bytes:
    """Of a line that overwrites itself by carriage returns, as a progress bar does, the last writing."""
    return text.rstrip(b"\r").rpartition(b"\r")[2]


def readable(text: bytes, cut: bool = False) -> str:
    """A line as people read it: its last state, without colours and other commands to a terminal.

    Invalid UTF-8 is shown as such.
    """
    return clean(last_state(text).decode("utf-8", "replace")) + (CUT if cut else "")


def last_lines(text: str, count: int) -> list[str]:
    """The last lines of a log that are not empty, as people read them."""
    found: list[str] = []
    for each in reversed(text.split("\n")):
        line = readable(each.encode("utf-8", "replace"))
        if line.strip():
            found.append(line)
        if len(found) == count:
            break
    return found[::-1]


def end_of(pieces: Iterable[bytes]) -> str:
    """The last `TEXT_BYTES` of a log as text."""
    found = bytearray()
    for piece in pieces:
        found += piece
        if len(found) > 2 * TEXT_BYTES:
            del found[:-TEXT_BYTES]
    return found[-TEXT_BYTES:].decode("utf-8", "replace")


def says_no_log(status: int, text: str) -> bool:
    """Whether an answer says that a container has no log, as one that is still to start has none."""
    return status == 400 and _NO_LOG.search(text) is not None
