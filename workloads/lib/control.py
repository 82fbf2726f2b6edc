"""One TCP connection from every ps and worker to the chief, which reports whether each is alive, leaving or lost.

TensorFlow reports none of this: its coordinator waits for a dead parameter server for ever. The chief listens on the
port after that of its TensorFlow server. A server sends `hello ROLE INDEX PROCESS`; a worker appends its device, such
as `cpu 1`: it computes on the CPU and was given one GPU. It then sends `alive` every two seconds, and `leaving` after
SIGTERM. When the chief closes the connection of a leaving server, that server is no longer needed. The chief sends two
messages:

- `lost`, to a worker that was silent: its steps were reassigned, and it ends before it continues with them.
- `finished`, when the run has ended: a server that receives SIGTERM afterwards does not wait for the chief.

Nothing here is authenticated. Neither is TensorFlow's own port, over which anyone could stop or change a run: the run's
NetworkPolicy admits only its own pods to both. Unknown lines are ignored, and a connection without `hello` is closed,
so that accidental connections do no harm.

This module is the server's side; the chief's side is `listener`.
"""

from __future__ import annotations

import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from lib.cluster_spec import Cluster
from lib.peers import split
from lib.preemption import GRACE_SECONDS

BEAT_SECONDS = 2.0
SILENT_SECONDS = 15.0
"""A peer that is silent for this long has no power, no network, or hangs."""
LINE_BYTES = 128
GIVEN_UP = b"lost\n"
FINISHED = b"finished\n"

_CONNECT_SECONDS = 2.0
_RETRY_SECONDS = 1.0
_HEARD_SECONDS = 1.0
"""Delivery of a message is only certain if the connection survives for this long: a connection that the other end has
closed accepts a line and fails immediately afterwards."""


def port(cluster: Cluster) -> int:
    """Return the chief's port for these connections."""
    return split(cluster.addresses["chief"][0])[1] + 1


class Link(threading.Thread):
    """The server's side of a connection. Start it when the server is ready.

    :param given_up: called when the chief has declared this process lost; it ends the process.
    :param device: device that this process computes on (`lib.devices`); empty for a ps.
    """

    def __init__(
        self, cluster: Cluster, given_up: Callable[[], object], device: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(name="control", daemon=True)
        self._given_up = given_up
        self._chief = (split(cluster.addresses["chief"][0])[0], port(cluster))
        computes = f" {device['compute']} {device['gpu_allocated']}" if device else ""
        self._hello = f"hello {cluster.role} {cluster.index} {uuid.uuid4().hex}{computes}\n".encode()
        self._connection: socket.socket | None = None
        self._leaving = threading.Event()
        self._said_leaving: float | None = None
        self._released = threading.Event()

    def leave(self) -> None:
        """Announce to the chief that this process will end, and return when it may end.

        That is when the chief closes the connection, or after the grace period. Without a chief it is immediate,
        because no one needs this server. The same holds after the end of the run, because connecting to a chief whose
        machine or pod is gone would take seconds.
        """
        self._leaving.set()
        if connection := self._connection:
            with suppress(OSError):
                self._say_leaving(connection)
        self._released.wait(GRACE_SECONDS)

    def run(self) -> None:
        last = heard = False
        while not (last or heard):
            # A server that receives SIGTERM while disconnected connects once more: the chief may still need it.
            last = self._leaving.is_set()
            with suppress(OSError), socket.create_connection(self._chief, _CONNECT_SECONDS) as connection:
                self._talk(connection)
            self._connection = None
            heard = self._said_leaving is not None and time.monotonic() - self._said_leaving > _HEARD_SECONDS
            self._leaving.wait(_RETRY_SECONDS)
        self._released.set()

    def _say_leaving(self, connection: socket.socket) -> None:
        connection.sendall(b"leaving\n")
        self._said_leaving = time.monotonic()

    def _talk(self, connection: socket.socket) -> None:
        """Send messages until the chief closes the connection or stops answering."""
        milliseconds = int(SILENT_SECONDS * 1000)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
        connection.settimeout(BEAT_SECONDS)
        connection.sendall(self._hello)
        self._connection = connection
        if self._leaving.is_set():
            self._say_leaving(connection)
        while True:
            try:
                said = connection.recv(LINE_BYTES)
            except TimeoutError:
                connection.sendall(b"alive\n")
                continue
            if said == GIVEN_UP:
                self._given_up()
            if said == FINISHED:
                self._released.set()
            if not said:
                return
