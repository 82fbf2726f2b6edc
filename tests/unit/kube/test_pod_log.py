"""Lines of logs: their ends, their times, their lengths, and the place of a reader among them."""

from __future__ import annotations

import tracemalloc

import pytest

from trainyard.core.untrusted import CUT
from trainyard.kube.pod_log import (
    LINE_BYTES,
    TEXT_BYTES,
    Lines,
    Position,
    end_of,
    last_lines,
    nanoseconds,
    readable,
    says_no_log,
)

T = "2026-11-21T12:00:0%d.000000000Z"


def split(data: bytes, **how: bool) -> list[tuple[str, bytes]]:
    lines = Lines(**how)
    return [(each.stamp, each.text) for each in [*lines.feed(data), *lines.rest()]]


@pytest.mark.parametrize("end", list("\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\0\udcff"))
def test_a_line_feed_alone_ends_a_line(end: str) -> None:
    text = f"one{end}two".encode("utf-8", "surrogateescape")
    assert split(f"{T % 1} ".encode() + text + b"\n") == [(T % 1, text)]
    assert split(text + b"\nlast", stamped=False) == [("", text), ("", b"last")]


@pytest.mark.parametrize(
    "odd",
    ["300/300", "2026-11-21", "2026-13-41T12:00:00Z", "2026-11-21T12:00:00", "٢٠٢٦-11-21T12:00:00Z", "9" * 5_000, ""],
)
def test_a_text_without_a_time_belongs_to_the_line_before(odd: str) -> None:
    assert nanoseconds(odd) is None
    data = f"{T % 1} one\n{odd} rest\n{T % 2} two".encode()
    assert split(data) == [(T % 1, b"one"), (T % 1, f"{odd} rest".encode()), (T % 2, b"two")]
    at, again = Position(), Position()
    lines = list(Lines().feed(data))
    assert [at.is_new(each) for each in lines] == [True, True]
    assert at.stamp == T % 1
    at.begin()
    assert [at.is_new(each) for each in lines] == [False, False]
    # Before any time it is a word of the kubelet, and none of the program's.
    assert not again.is_new(next(Lines().feed(b"unable to retrieve container logs\n")))


def test_times_are_compared_as_times() -> None:
    summer, winter = "2026-10-25T02:59:59.5+02:00", "2026-10-25T02:00:00.5+01:00"
    assert (nanoseconds(winter) or 0) - (nanoseconds(summer) or 0) == 10**9
    at = Position()
    assert [at.is_new(each) for each in Lines().feed(f"{summer} one\n{winter} two\n".encode())] == [True, True]
    assert at.stamp == winter


def test_of_lines_with_one_time_none_is_lost_or_repeated() -> None:
    def data(count: int) -> bytes:
        return b"".join(f"{T % 1} {number}\n".encode() for number in range(count))

    at, found = Position(), []
    for count in (2, 2, 5):
        at.begin()
        found += [each.text for each in Lines().feed(data(count)) if at.is_new(each)]
    assert found == [b"0", b"1", b"2", b"3", b"4"]


def test_an_answer_that_may_leave_lines_out_is_known() -> None:
    at = Position()
    assert [at.is_new(each) for each in Lines().feed(f"{T % 1} one\n".encode())] == [True]
    for second, misses in ((1, False), (2, True)):
        at.begin()
        assert at.misses(next(Lines().feed(f"{T % second} x\n".encode()))) is misses


def test_a_line_that_is_too_long_comes_in_pieces() -> None:
    lines, size, found = Lines(), LINE_BYTES + 5, 0
    begin = f"{T % 1} ".encode()
    for data in (begin, *[b"x" * 65_536] * (size // 65_536), b"x" * (size % 65_536), b"\n"):
        for each in lines.feed(data):
            found += len(each.text)
            assert (each.stamp, each.ended, each.cut) == (T % 1, found == size, found != LINE_BYTES)
    assert found == size


def test_a_large_log_takes_little_memory() -> None:
    tracemalloc.start()
    lines = Lines()
    for _ in range(1_024):
        assert sum(len(each.text) for each in lines.feed(b"z" * 131_072)) <= LINE_BYTES
    text = end_of(b"z" * 131_072 for _ in range(512))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(text) == TEXT_BYTES and peak < 5 * LINE_BYTES


def test_as_people_read_it() -> None:
    assert readable(b"10%\r20%\x1b[0m\xff\r", cut=True) == "20%\ufffd" + CUT
    assert last_lines("one\n\n\r1/2\r2/2\n \n\x1b[2Jlast\u2028\n", 2) == ["2/2", "last"]


@pytest.mark.parametrize(
    ("status", "text", "none"),
    [
        (400, 'container "main" in pod "a" is waiting to start: ContainerCreating', True),
        (400, 'container "main" in pod "a" is waiting to start: trying and failing to pull image', True),
        (400, 'previous terminated container "main" in pod "a" not found', True),
        (400, 'container "main" in pod "a" is not available', True),
        (400, 'parsing time "203/300" as "2006-01-02T15:04:05Z07:00": cannot parse "203/300" as "2006"', False),
        (400, "a container name must be specified for pod a, choose one of: [main side]", False),
        (500, 'container "main" in pod "a" is waiting to start: ContainerCreating', False),
    ],
)
def test_which_answers_say_that_there_is_no_log(status: int, text: str, none: bool) -> None:
    assert says_no_log(status, f"log of pod a: {text} (status {status}).") is none
