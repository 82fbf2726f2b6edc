"""Tests of waiting for peers by TCP."""

from __future__ import annotations

import os
import socket
import time

import pytest

from engine.cluster.peers import cut, require_free, unreachable, wait_for
from engine.errors import InputError, StalledError


@pytest.fixture
def listening():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def closed():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    return f"127.0.0.1:{port}"


@pytest.fixture
def silent():
    """Return addresses with a full connection queue: like a machine without power, they never answer."""
    opened = []
    for _ in range(25):
        server = socket.socket()
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        opened += [server, socket.create_connection(server.getsockname(), 5)]
    yield [f"127.0.0.1:{server.getsockname()[1]}" for server in opened[::2]]
    for each in opened:
        each.close()


def test_reachable_peers_are_not_waited_for(listening):
    wait_for({"ps 0": listening}, timeout=5)


def test_a_missing_peer_is_named(listening, closed):
    peers = {"ps 0": listening, "worker 0": closed}
    assert list(unreachable(peers)) == ["worker 0"]
    looks = []
    with pytest.raises(StalledError, match=rf"worker 0 \({closed}"):
        wait_for(peers, timeout=0.5, waiting=lambda: looks.append(1))
    assert looks
    with pytest.raises(StalledError, match=rf"ps 0 \({listening}: it has not called\)"):
        wait_for(peers, timeout=0.1, silent=lambda: ["ps 0"])


def test_many_silent_peers_are_asked_together(listening, closed, silent, monkeypatch):
    resolve = socket.getaddrinfo

    def slow(host, *arguments):
        if host == "no-answer":
            time.sleep(10)
        return resolve(host, *arguments)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    peers = {f"worker {i}": address for i, address in enumerate(silent)}
    begun = time.monotonic()
    reasons = unreachable({"ps 0": listening, "ps 1": closed, "ps 2": "no-answer:1", **peers})
    assert time.monotonic() - begun < 3
    assert list(reasons) == ["ps 1", "ps 2", *peers]
    assert "refused" in reasons["ps 1"]


def test_a_taken_port_is_refused(listening, closed):
    require_free(closed)
    with pytest.raises(InputError, match=rf"{listening} cannot be used"):
        require_free(listening)
    with pytest.raises(InputError, match=rf"of {closed} cannot be used"):
        require_free(closed, int(listening.rpartition(":")[2]))


def test_only_the_connections_to_one_peer_are_cut(listening):
    host, port = listening.split(":")
    with (
        socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True) as other,
        socket.create_connection((host, int(port)), 5) as first,
        socket.create_connection(("::ffff:127.0.0.1", int(port)), 5) as second,
        socket.create_connection(("127.0.0.1", other.getsockname()[1]), 5) as third,
    ):
        assert cut(host, int(port)) == 2
        assert first.recv(1) == second.recv(1) == b""
        third.sendall(b"x")
        assert cut(host, int(port) + 1) == 0


def test_cutting_leaves_no_descriptor_open(listening, tmp_path):
    host, port = listening.split(":")
    one, two = socket.socketpair()
    with (tmp_path / "file").open("w"), one, two, socket.create_connection((host, int(port)), 5):
        before = set(os.listdir("/proc/self/fd"))
        assert cut(host, int(port)) == 1
        # Descriptors left by earlier tests may be closed in the meantime.
        assert set(os.listdir("/proc/self/fd")) <= before
