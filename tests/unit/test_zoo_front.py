"""The forwarder that gives a host of the zoo an address of the controller."""

from __future__ import annotations

import socket
import socketserver
import threading

import pytest

from tests.zoo import front as module
from tests.zoo.front import front


class Echo(socketserver.StreamRequestHandler):
    """A host that answers each line with its own text before it, until the client ends."""

    def handle(self) -> None:
        for text in self.rfile:
            self.wfile.write(b"host: " + text)


def test_bytes_pass_both_ways_until_one_side_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(module, "SSH", server.server_address[1])
        with front("127.0.0.1") as variables:
            address = (variables["ansible_host"], variables["ansible_port"])
            assert variables["ansible_ssh_common_args"].endswith(" -o HostKeyAlias=127.0.0.1")
            for _ in range(2):
                with socket.create_connection(address, timeout=10) as client:
                    client.sendall(b"one\ntwo\n")
                    client.shutdown(socket.SHUT_WR)
                    assert client.makefile("rb").read() == b"host: one\nhost: two\n"
        server.shutdown()
        with pytest.raises(OSError):
            socket.create_connection(address, timeout=1)
