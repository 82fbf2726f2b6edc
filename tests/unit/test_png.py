"""Pictures with a palette: the same size, and the same colours where a palette holds them."""

from __future__ import annotations

import random
import struct
import zlib

import pytest

from tests.browser.png import BEGIN, _chunk, _paeth, _pixels, size, with_palette

Row = list[tuple[int, ...]]


def written(rows: list[Row], kinds: list[int], depth: int = 8) -> bytes:
    """A PNG as browsers write it, each row with the filter of a kind."""
    back = len(rows[0][0])
    plain = [bytes(part for pixel in row for part in pixel) for row in rows]
    lines = b""
    for n, (kind, row) in enumerate(zip(kinds, plain, strict=True)):
        above = plain[n - 1] if n else bytes(len(row))
        for_each = [
            (row[at - back] if at >= back else 0, above[at], above[at - back] if at >= back else 0)
            for at in range(len(row))
        ]
        guess = [(0, left, up, (left + up) // 2, _paeth(left, up, corner))[kind] for left, up, corner in for_each]
        lines += bytes([kind]) + bytes((one - add) & 255 for one, add in zip(row, guess, strict=True))
    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), depth, {3: 2, 4: 6}[back], 0, 0, 0)
    half = zlib.compress(lines)
    parts = ((b"IHDR", head), (b"IDAT", half[:20]), (b"IDAT", half[20:]), (b"IEND", b""))
    return BEGIN + b"".join(map(_chunk, parts))


def read(png: bytes) -> list[Row]:
    """The pixels of a PNG with a palette."""
    width, height = size(png)
    parts, at = {}, 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        parts[png[at + 4 : at + 8]] = png[at + 8 : at + 8 + length]
        at += 12 + length
    colours = [tuple(parts[b"PLTE"][n : n + 3]) for n in range(0, len(parts[b"PLTE"]), 3)]
    data = zlib.decompress(parts[b"IDAT"])
    lines = [data[n * (width + 1) + 1 : (n + 1) * (width + 1)] for n in range(height)]
    return [[colours[index] for index in line] for line in lines]


@pytest.mark.parametrize("of_pixel", [3, 4])
def test_a_palette_that_holds_all_colours_changes_none(of_pixel: int) -> None:
    chance = random.Random(7)
    few = [tuple(chance.randrange(256) for _ in range(3)) for _ in range(200)]
    rows = [[(*chance.choice(few), 255)[:of_pixel] for _ in range(40)] for _ in range(10)]
    png = written(rows, [0, 1, 2, 3, 4] * 2)
    assert read(with_palette(png)) == [[pixel[:3] for pixel in row] for row in rows]


def test_more_colours_are_rounded_as_little_as_it_takes() -> None:
    rows: list[Row] = [[(n, n // 2, 255 - n) for n in range(256)], [(n, 255 - n, 0) for n in range(256)]]
    png = with_palette(written(rows, [4, 1]))
    assert size(png) == (256, 2)
    found = read(png)
    pairs = [pair for one, two in zip(rows, found, strict=True) for pair in zip(one, two, strict=True)]
    assert max(abs(a - b) for one, two in pairs for a, b in zip(one, two, strict=True)) <= 8
    assert sum(one == two for one, two in pairs) >= 128
    assert len({pixel for row in found for pixel in row}) <= 256


@pytest.mark.parametrize("odd", [b"", b"GIF89a", written([[(1, 2, 3)]], [0], depth=16)])
def test_other_pictures_are_refused(odd: bytes) -> None:
    with pytest.raises(ValueError, match=r"no PNG|other colours"):
        with_palette(odd)


def test_what_was_made_is_no_picture_of_a_browser() -> None:
    with pytest.raises(ValueError, match="other colours"):
        _pixels(with_palette(written([[(1, 2, 3)]], [0])))
