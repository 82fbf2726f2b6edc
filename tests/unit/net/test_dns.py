"""dns_probe against a real UDP server on the loopback interface."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from trainyard.net import dns as dns_probe
from trainyard.net.dns import DnsError

NAME = "kubernetes.default.svc.cluster.local"


def reply(query: bytes, addresses: list[str], *, code: int = 0, flags: int = 0x8180) -> bytes:
    """An answer with a CNAME before the A records, names compressed as CoreDNS does."""
    identifier = struct.unpack_from(">H", query)[0]
    header = struct.pack(">6H", identifier, flags | code, 1, len(addresses) + 1, 0, 0)
    records = b"\xc0\x0c" + struct.pack(">HHIH", 5, 1, 30, 2) + b"\xc0\x0c"
    for address in addresses:
        records += b"\xc0\x0c" + struct.pack(">HHIH", dns_probe.A, 1, 30, 4) + socket.inet_aton(address)
    return header + query[12:] + records


@contextmanager
def server(answer: Callable[[bytes, int], list[bytes]]) -> Iterator[int]:
    """A DNS server; `answer` gets the query and its number and returns the packets to send. Yields the port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        sock.settimeout(0.05)
        stop = threading.Event()

        def serve() -> None:
            number = 0
            while not stop.is_set():
                try:
                    query, peer = sock.recvfrom(4096)
                except TimeoutError:
                    continue
                for packet in answer(query, number):
                    sock.sendto(packet, peer)
                number += 1

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield sock.getsockname()[1]
        finally:
            stop.set()
            thread.join()


def ask(port: int, timeout: float = 10.0) -> dns_probe.Answer:
    return dns_probe.ask("127.0.0.1", NAME, port=port, timeout=timeout)


def test_query_is_what_rfc_1035_says() -> None:
    query = dns_probe.encode_query(0x1234, "a.bc.", dns_probe.A)
    assert query == b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" + b"\x01a\x02bc\x00" + b"\x00\x01\x00\x01"


@pytest.mark.parametrize("name", ["", "a..b", "x" * 64 + ".local"])
def test_name_that_cannot_be_asked(name: str) -> None:
    with pytest.raises(DnsError, match="not a DNS name"):
        dns_probe.encode_query(1, name, dns_probe.A)


def test_answer_with_addresses() -> None:
    with server(lambda query, _: [reply(query, ["10.96.0.1", "10.96.0.2"])]) as port:
        answer = ask(port)
    assert answer.addresses == ("10.96.0.1", "10.96.0.2")
    assert 0 < answer.seconds < 0.5


def test_foreign_packet_is_dropped_and_the_answer_taken() -> None:
    def answer(query: bytes, _: int) -> list[bytes]:
        right = reply(query, ["10.96.0.1"])
        return [bytes([right[0] ^ 1]) + right[1:], right]

    with server(answer) as port:
        assert ask(port).addresses == ("10.96.0.1",)


def test_lost_question_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dns_probe, "RESEND_S", 0.1)
    with server(lambda query, number: [reply(query, ["10.96.0.1"])] if number else []) as port:
        assert ask(port).seconds >= 0.1


@pytest.mark.parametrize(
    ("packet", "error"),
    [
        (lambda query: reply(query, [], code=3), "NXDOMAIN"),
        (lambda query: reply(query, [], code=9), "code 9"),
        (lambda query: reply(query, ["10.96.0.1"], flags=0x8380), "truncated"),
        (lambda query: reply(query, ["10.96.0.1"], flags=0x0100), "not the answer"),
        (lambda query: reply(query, ["10.96.0.1"])[:-3], "not a DNS packet"),
        (lambda query: query[:2] + b"\x81\x80", "not a DNS packet"),
        (lambda query: query[:2] + struct.pack(">5H", 0x8180, 1, 1, 0, 0) + b"\x3f" * 9, "not a DNS packet"),
    ],
)
def test_bad_answers(packet: Callable[[bytes], bytes], error: str) -> None:
    with server(lambda query, _: [packet(query)]) as port, pytest.raises(DnsError, match=error):
        ask(port)


def test_silence_is_bounded() -> None:
    started = time.monotonic()
    with server(lambda query, _: []) as port, pytest.raises(DnsError, match=r"did not answer within 0\.3 s"):
        ask(port, timeout=0.3)
    assert time.monotonic() - started < 2


def test_closed_port_is_named() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    with pytest.raises(DnsError, match="refused"):
        ask(port)
