"""Tests that the red team's load is bounded and stays in the lab, and that a client's wait is detected; on loopback."""

from __future__ import annotations

import asyncio
import os
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import red_load
import red_network
from timed import BenchError

from tests.unit.certificates import self_signed


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(404 if self.path == "/none" else 200)
        self.end_headers()
        self.wfile.write(b"here")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


class Threads(ThreadingHTTPServer):
    """A server with a thread for each connection."""

    request_queue_size = 64


class OneByOne(HTTPServer):
    """A server that handles one connection after the other."""

    request_queue_size = 64


@contextmanager
def serving(folder: Path, kind: type[HTTPServer] = Threads) -> Iterator[int]:
    """Start a server with TLS on loopback, and yield its port."""
    certificate, key = self_signed()
    for name, text in (("tls.crt", certificate), ("tls.key", key)):
        (folder / name).write_text(text)
    server = kind(("127.0.0.1", 0), Handler)
    trusted = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trusted.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    # The handshake happens at the first read: a client that does not finish it blocks a thread, not the server.
    server.socket = trusted.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join(5)


@pytest.mark.parametrize(
    ("address", "kind", "count", "seconds"),
    [
        ("192.0.2.1", "connect", 10, 1.0),
        ("10.88.0.2", "connect", 10, 1.0),
        ("10.87.0.2", "post", 10, 1.0),
        ("10.87.0.2", "connect", 1001, 1.0),
        ("10.87.0.2", "connect", 0, 1.0),
        ("10.87.0.2", "connect", 10, 61.0),
    ],
)
def test_a_load_that_is_more_than_a_test_is_refused(address: str, kind: str, count: int, seconds: float) -> None:
    with pytest.raises(SystemExit):
        red_load.checked("10.87.0.0/24", address, kind, count, seconds)


def test_a_load_in_the_lab_is_accepted() -> None:
    red_load.checked("10.87.0.0/24", "10.87.0.2", "body", 300, 20.0)
    assert set(red_network.KINDS) == set(red_load.SAID)
    assert max(red_network.KINDS.values()) <= red_load.MOST and red_network.ATTACK_SECONDS <= red_load.LONGEST


@pytest.mark.parametrize("kind", red_load.SAID)
def test_connections_are_held_and_end_in_time(tmp_path: Path, kind: str) -> None:
    with serving(tmp_path) as port:
        began = time.monotonic()
        found = asyncio.run(red_load.run("127.0.0.1", port, kind, 10, 1.0))
        assert time.monotonic() - began < 5
    assert found.most >= 8 and found.open == 0 and 10 <= found.tried <= 100


def test_what_is_closed_is_opened_again_within_bounds() -> None:
    async def scenario() -> red_load.Load:
        async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        async with await asyncio.start_server(close, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            return await red_load.run("127.0.0.1", port, "connect", 2, 4.0)

    assert 10 <= asyncio.run(scenario()).tried <= 21


def test_nothing_leaves_this_machine() -> None:
    assert red_network.direct("127.0.0.1")
    assert red_network.is_direct([{"dst": "10.87.0.2", "dev": "podman1"}])
    assert not red_network.is_direct([{"dst": "192.0.2.1", "gateway": "192.0.2.254", "dev": "eth0"}])
    assert not red_network.is_direct([])


def test_a_server_answers_by_its_name(tmp_path: Path) -> None:
    with serving(tmp_path) as port:
        authority = tmp_path / "tls.crt"
        assert red_network.fetch("127.0.0.1", port, "localhost", authority, "/v2/") == b"here"
        with pytest.raises(BenchError, match="404"):
            red_network.fetch("127.0.0.1", port, "localhost", authority, "/none")
        with pytest.raises(ssl.SSLError):
            red_network.fetch("127.0.0.1", port, "elsewhere.example.org", authority, "/v2/")


@pytest.fixture
def podman(tmp_path: Path) -> Iterator[None]:
    """Provide a container engine whose only container is this machine."""
    program = tmp_path / "podman"
    program.write_text('#!/bin/sh\nshift 3\nexec "$@"\n')
    program.chmod(0o755)
    with mock.patch.dict(os.environ, {"PATH": f"{tmp_path}:{os.environ['PATH']}"}):
        yield


@pytest.fixture
def short() -> Iterator[None]:
    with (
        mock.patch.object(red_network, "ATTACK_SECONDS", 3.0),
        mock.patch.object(red_network, "WARM_UP", 1.0),
        mock.patch.dict(red_network.KINDS, {"handshake": 3}),
    ):
        yield


@pytest.mark.usefixtures("podman", "short")
@pytest.mark.parametrize(("kind", "holds"), [(Threads, False), (OneByOne, True)])
def test_a_server_that_is_held_is_seen(tmp_path: Path, kind: type[HTTPServer], holds: bool) -> None:
    """Sequential handshakes make the attack succeed: without a thread for each, no client gets an answer."""
    lab: Any = mock.Mock(lab="x")
    with serving(tmp_path, kind) as port:

        def ask() -> object:
            return red_network.fetch("127.0.0.1", port, "localhost", tmp_path / "tls.crt", "/")

        found, longest = red_network.attack(
            lab, "10.87.0.0/24", red_network.Server("127.0.0.1", port, ask), "handshake"
        )
    assert found["tried"] >= 3 and (longest > 1.0) is holds


def test_the_network_is_that_of_the_inventory(tmp_path: Path) -> None:
    (tmp_path / "group_vars" / "all").mkdir(parents=True)
    with pytest.raises(BenchError, match="names no"):
        red_network.network(tmp_path)
    (tmp_path / "group_vars" / "all" / "lab.yml").write_text("lab_subnet: 10.87.0.0/24\n")
    assert red_network.network(tmp_path) == "10.87.0.0/24"
