"""A DNS query over UDP, standard library only: nodes have no DNS client except the resolver of libc.

Packet layout: RFC 1035, section 4; AAAA: RFC 3596.
"""

from __future__ import annotations

import ipaddress
import secrets
import socket
import struct
import time
from dataclasses import dataclass

A = 1
AAAA = 28
_CLASS_IN = 1
_POINTER = 0xC0
_TRUNCATED = 0x0200
_RESPONSE = 0x8000
_RCODES = {0: "NOERROR", 1: "FORMERR", 2: "SERVFAIL", 3: "NXDOMAIN", 4: "NOTIMP", 5: "REFUSED"}

RESEND_S = 1.0
"""Seconds after which the query is sent again, because UDP may lose it silently."""


class DnsError(Exception):
    """No usable answer; the message gives the reason."""


@dataclass(frozen=True)
class Answer:
    """The answer of a DNS server.

    :param addresses: the addresses in the answer section, in order.
    :param seconds: from the first query to the answer.
    """

    addresses: tuple[str, ...]
    seconds: float


def encode_query(identifier: int, name: str, kind: int) -> bytes:
    """Encode a query for `name`'s records of one kind (`A` or `AAAA`).

    :param identifier: 16 bits that the answer must repeat.
    :param name: fully qualified, with or without the last dot.
    :raises DnsError: the name has an empty label or one above 63 octets.
    """
    labels = name.rstrip(".").encode("idna" if not name.isascii() else "ascii").split(b".")
    if any(not 0 < len(label) < 64 for label in labels):
        raise DnsError(f"{name!r} is not a DNS name")
    question = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    return struct.pack(">6H", identifier, 0x0100, 1, 0, 0, 0) + question + struct.pack(">2H", kind, _CLASS_IN)


def decode_answer(packet: bytes, identifier: int, kind: int) -> tuple[str, ...]:
    """Decode the addresses of one kind from a response.

    :raises DnsError: not the answer to this query, an error code, or a malformed packet.
    """
    try:
        found, flags, questions, answers = struct.unpack_from(">4H", packet)
        if found != identifier or not flags & _RESPONSE:
            raise DnsError("the packet is not the answer to the question")
        code = flags & 0x000F
        if code:
            raise DnsError(f"the server answered {_RCODES.get(code, f'code {code}')}")
        if flags & _TRUNCATED:
            raise DnsError("the answer is truncated")
        offset = 12
        for _ in range(questions):
            offset = _skip_name(packet, offset) + 4
        addresses = []
        for _ in range(answers):
            offset = _skip_name(packet, offset)
            record, _, _, length = struct.unpack_from(">HHIH", packet, offset)
            offset += 10
            data = packet[offset : offset + length]
            offset += length
            if record == kind:
                addresses.append(str(ipaddress.ip_address(data)))
        return tuple(addresses)
    except (struct.error, IndexError, ValueError) as error:
        raise DnsError("the answer is not a DNS packet") from error


def _skip_name(packet: bytes, offset: int) -> int:
    """Return the offset after the name at `offset`. A compression pointer ends a name and is not followed."""
    for _ in range(128):
        length = packet[offset]
        if length & _POINTER == _POINTER:
            return offset + 2
        offset += 1 + length
        if not length:
            return offset
    raise DnsError("the answer is not a DNS packet")


def ask(server: str, name: str, *, kind: int = A, port: int = 53, timeout: float = 5.0) -> Answer:
    """Query `server` over UDP and return the first valid answer.

    :param timeout: total limit in seconds; within it, the query is sent again every `RESEND_S` seconds.
    :raises DnsError: no answer in time, the server refuses, or the answer is an error.
    """
    identifier = secrets.randbits(16)
    query = encode_query(identifier, name, kind)
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    started = time.monotonic()
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect((server, port))  # Filters packets of other servers and reports refusals.
            while (left := started + timeout - time.monotonic()) > 0:
                sock.send(query)
                packet = _receive(sock, identifier, min(RESEND_S, left))
                if packet:
                    return Answer(decode_answer(packet, identifier, kind), time.monotonic() - started)
        except OSError as error:
            raise DnsError(f"{server} port {port}: {error.strerror or error}") from error
    raise DnsError(f"{server} did not answer within {timeout:g} s")


def _receive(sock: socket.socket, identifier: int, seconds: float) -> bytes:
    """Return the next packet with the identifier, or nothing after the timeout. Other packets are dropped."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        sock.settimeout(left)
        try:
            packet = sock.recv(4096)
        except TimeoutError:
            break
        if packet[:2] == struct.pack(">H", identifier):
            return packet
    return b""
