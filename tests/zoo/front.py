"""An address of the controller that leads to the SSH server of a host, as a provider's translated address does."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

ADDRESS = "127.0.0.2"
SSH = 22
LARGEST = 1 << 16
"""Bytes of one read."""


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    target = ""


class _Connection(socketserver.BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        with socket.create_connection((self.server.target, SSH), timeout=10) as host:
            host.settimeout(None)
            answers = threading.Thread(target=_copy, args=(host, self.request), daemon=True)
            answers.start()
            _copy(self.request, host)
            answers.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Send what one side sends until it ends; a side that is lost ends both."""
    try:
        while data := source.recv(LARGEST):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        target.close()


@contextmanager
def front(target: str) -> Iterator[dict[str, Any]]:
    """Forward a port of the controller to the SSH server of a host.

    :param target: address of the host.
    :returns: variables with which Ansible reaches the host there. Its key is the one that it has at its own address. An
        inventory has it outside `lab_hosts`, whose addresses are the lab's.
    """
    known_hosts = "-o UserKnownHostsFile={{ lab_state_dir }}/ssh/known_hosts -o IdentitiesOnly=yes"
    with _Server((ADDRESS, 0), _Connection) as server:
        server.target = target
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield {
            "ansible_host": ADDRESS,
            "ansible_port": server.server_address[1],
            "ansible_user": "root",
            "ansible_ssh_private_key_file": "{{ lab_state_dir }}/ssh/id_ed25519",
            "ansible_ssh_common_args": f"{known_hosts} -o HostKeyAlias={target}",
        }
        server.shutdown()
