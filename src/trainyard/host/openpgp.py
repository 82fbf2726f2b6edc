"""Compute the fingerprints of the keys in an apt key file, because a minimal host has no program for that."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator

PUBLIC_KEY = 6
"""Tag of a primary key's packet (RFC 9580, section 5)."""

ARMOR = re.compile(rb"-----BEGIN PGP PUBLIC KEY BLOCK-----(.*?)-----END PGP PUBLIC KEY BLOCK-----", re.DOTALL)


def fingerprints(content: bytes) -> list[str]:
    """Return the fingerprints of the primary keys in a key file, in upper case; empty if it is not a key file.

    :param content: the file's bytes, armored or not.
    """
    try:
        blocks = [_unarmored(body) for body in ARMOR.findall(content)] or [content]
        return [_fingerprint(body) for block in blocks for tag, body in _packets(block) if tag == PUBLIC_KEY]
    except (ValueError, IndexError):
        return []


def _unarmored(body: bytes) -> bytes:
    """Return the packets of an armored block: the data after the headers and the empty line, without the checksum."""
    lines = [line.strip() for line in body.strip(b" \t").splitlines()[1:]]
    text = lines[lines.index(b"") + 1 :] if b"" in lines else lines
    return base64.b64decode(b"".join(line for line in text if not line.startswith(b"=")), validate=True)


def _packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the tag and body of each packet.

    :raises ValueError: this is not a sequence of packets, or a length is invalid for a key.
    """
    place = 0
    while place < len(data):
        head, place = data[place], place + 1
        if not head & 0x80:
            raise ValueError("not a packet")
        if head & 0x40:
            tag, (size, place) = head & 0x3F, _new_length(data, place)
        else:
            tag, width = head >> 2 & 0x0F, 1 << (head & 3)
            if width == 8:
                raise ValueError("a packet of indeterminate length")
            size, place = int.from_bytes(data[place : place + width], "big"), place + width
        if place + size > len(data):
            raise ValueError("a truncated packet")
        yield tag, data[place : place + size]
        place += size


def _new_length(data: bytes, place: int) -> tuple[int, int]:
    """Return the length of a packet in the newer format, and the offset of its body (RFC 9580, section 4.2.1)."""
    first = data[place]
    if first < 192:
        return first, place + 1
    if first < 224:
        return (first - 192 << 8) + data[place + 1] + 192, place + 2
    if first < 255:
        raise ValueError("a packet of partial length")
    return int.from_bytes(data[place + 1 : place + 5], "big"), place + 5


def _fingerprint(body: bytes) -> str:
    """Return the fingerprint of a key (RFC 9580, section 5.5.4).

    :raises ValueError: the key has a version that apt does not use.
    """
    if body[0] == 4:
        # The format prescribes SHA-1. Trust in the key comes from the lock file, which contains its fingerprint.
        return hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body, usedforsecurity=False).hexdigest().upper()
    if body[0] == 6:
        return hashlib.sha256(b"\x9b" + len(body).to_bytes(4, "big") + body).hexdigest().upper()
    raise ValueError("a key of an unsupported version")
