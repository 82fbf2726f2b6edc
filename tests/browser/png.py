"""A browser's picture as a smaller one of the same size: a palette in place of full colours."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterator

BEGIN = b"\x89PNG\r\n\x1a\n"
CHANNELS = {2: 3, 6: 4}
"""Type of colours -> bytes of a pixel: those that browsers write, RGB and RGBA."""
COLOURS = 256
"""That a palette has at most."""
EXACT = 128
"""The most frequent ones, such as those of surfaces, which are never rounded."""
STEPS = (1, 4, 8, 16, 32, 64)
"""To whose multiples the others are rounded, one after the other, until a palette holds all; 1 rounds nothing."""


def with_palette(png: bytes) -> bytes:
    """The same picture with one byte for a pixel. Colours are rounded as little as that takes, and not at all where a
    palette holds them as they are.

    :raises ValueError: this is no picture as browsers write it: 8 bits for each of red, green, blue (and alpha, which
        is left out), not interlaced.
    """
    width, height, rows = _pixels(png)
    often = Counter(colour for row in rows for colour in row).most_common()
    for step in STEPS:
        rounded: dict[tuple[int, ...], tuple[int, ...]] = {colour: colour for colour, _ in often[:EXACT]}
        rounded |= {colour: tuple(_near(part, step) for part in colour) for colour, _ in often[EXACT:]}
        palette = sorted(set(rounded.values()))
        if len(palette) <= COLOURS:
            break
    place = {colour: index for index, colour in enumerate(palette)}
    index = {colour: place[near] for colour, near in rounded.items()}
    lines = b"".join(b"\0" + bytes(index[colour] for colour in row) for row in rows)
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    colours = b"".join(map(bytes, palette))
    parts = ((b"IHDR", head), (b"PLTE", colours), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return BEGIN + b"".join(map(_chunk, parts))


def _near(part: int, step: int) -> int:
    return min(255, (part + step // 2) // step * step)


def size(png: bytes) -> tuple[int, int]:
    """Width and height in pixels.

    :raises ValueError: this is no PNG.
    """
    if png[:8] != BEGIN or png[12:16] != b"IHDR":
        raise ValueError("this is no PNG")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def _pixels(png: bytes) -> tuple[int, int, list[list[tuple[int, int, int]]]]:
    """Width, height, and the rows of pixels."""
    width, height = size(png)
    depth, kind, _, _, interlaced = png[24:29]
    if depth != 8 or kind not in CHANNELS or interlaced:
        raise ValueError("a picture with other colours than those of browsers")
    of_pixel = CHANNELS[kind]
    data = zlib.decompress(b"".join(content for name, content in _chunks(png) if name == b"IDAT"))
    rows, before, line = [], bytes(width * of_pixel), width * of_pixel + 1
    for begin in range(0, height * line, line):
        before = _plain(data[begin], data[begin + 1 : begin + line], before, of_pixel)
        rows.append(list(zip(before[0::of_pixel], before[1::of_pixel], before[2::of_pixel], strict=True)))
    return width, height, rows


def _plain(kind: int, row: bytes, above: bytes, back: int) -> bytes:
    """A row without its filter (PNG specification, 9.2).

    :param above: the row before, without its own.
    :param back: bytes of a pixel.
    """
    if kind == 0:
        return row
    if kind == 2:
        return bytes((one + up) & 255 for one, up in zip(row, above, strict=True))
    found = bytearray(back) + bytearray(len(row))
    over = bytes(back) + above
    for at, one in enumerate(row, back):
        left, up, corner = found[at - back], over[at], over[at - back]
        add = left if kind == 1 else (left + up) // 2 if kind == 3 else _paeth(left, up, corner)
        found[at] = (one + add) & 255
    return bytes(found[back:])


def _paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    near = (abs(guess - left), abs(guess - up), abs(guess - corner))
    return (left, up, corner)[near.index(min(near))]


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(BEGIN)
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        at += 12 + length


def _chunk(part: tuple[bytes, bytes]) -> bytes:
    name, content = part
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
