"""Ports for clusters on the loopback interface, in tests."""

from __future__ import annotations

import socket


def addresses(count: int) -> list[str]:
    """Loopback addresses whose ports, and the ports after them, were free a moment ago."""
    found: list[str] = []
    held: list[socket.socket] = []
    while len(found) < count:
        one = socket.create_server(("127.0.0.1", 0))
        held.append(one)
        number = one.getsockname()[1]
        try:
            held.append(socket.create_server(("127.0.0.1", number + 1)))
        except OSError:
            continue
        found.append(f"127.0.0.1:{number}")
    for each in held:
        each.close()
    return found
