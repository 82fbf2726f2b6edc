"""Free ports for clusters on the loopback interface, in tests."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack

# Below the ephemeral ports of Linux (ip_local_port_range: from 32768) and the node ports of Kubernetes (from 30000).
# Otherwise a connection of any program could take a port that the kernel chose between test and use.
PORTS = range(15_000, 30_000)


def addresses(count: int) -> list[str]:
    """Return loopback addresses whose ports, and the ports after them, were free a moment ago."""
    found: list[str] = []
    with ExitStack() as held:
        for number in random.sample(PORTS[::2], len(PORTS[::2])):
            if len(found) == count:
                break
            try:
                for each in (number, number + 1):
                    held.enter_context(socket.create_server(("", each)))
            except OSError:
                continue
            found.append(f"127.0.0.1:{number}")
    return found
