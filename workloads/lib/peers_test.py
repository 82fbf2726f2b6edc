"""Waiting for peers by TCP."""

import socket

import pytest

from lib.errors import InputError, StalledError
from lib.peers import require_free, unreachable, wait_for


@pytest.fixture
def listening():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def closed():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    return f"127.0.0.1:{port}"


def test_reachable_peers_are_not_waited_for(listening):
    wait_for({"ps 0": listening}, timeout=5)


def test_a_missing_peer_is_named(listening, closed):
    assert list(unreachable({"ps 0": listening, "worker 0": closed})) == ["worker 0"]
    with pytest.raises(StalledError, match=rf"worker 0 \({closed}"):
        wait_for({"ps 0": listening, "worker 0": closed}, timeout=0.1)


def test_a_taken_port_is_refused(listening, closed):
    require_free(closed)
    with pytest.raises(InputError, match=rf"{listening} cannot be used"):
        require_free(listening)
