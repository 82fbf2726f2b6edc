"""One TCP connection from every ps and worker to the chief: who is there, who is leaving, who is gone.

TensorFlow itself says none of it: its coordinator waits for a dead parameter server for ever. The chief listens on the
port after its TensorFlow server's. A server says `hello ROLE INDEX PROCESS`, a worker what it computes on besides
(`cpu 1`: on the CPU, with one GPU given), then `alive` every two seconds, and `leaving` after SIGTERM. That the chief
hangs up tells a leaving server that it is not needed any more. The chief says two things: `lost`, to a worker that was
silent: its work was given to another, and it ends before it goes on with it; and `finished`, when the run has ended:
who is told to stop after that asks nobody.

Nothing here is authenticated, like TensorFlow's own port, over which anybody could stop or change a run: the run's
NetworkPolicy admits only its own pods to both. Lines that are not understood are ignored, and what says no `hello` is
hung up on, so that whatever else connects by mistake does no harm.

Here is the server's end; the chief's is in `listener`.
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
"""A peer that says nothing for so long has no power, no network, or hangs."""
LINE_BYTES = 128
GIVEN_UP = b"lost\n"
FINISHED = b"finished\n"

_CONNECT_SECONDS = 2.0
_RETRY_SECONDS = 1.0
_HEARD_SECONDS = 1.0
"""What was sent is only known to have come when the connection goes on for so long: one that the other end has closed
takes a line, and breaks off at once."""


def port(cluster: Cluster) -> int:
    """The chief's port for these connections."""
    return split(cluster.addresses["chief"][0])[1] + 1


class Link(threading.Thread):
    """A server's end. Start it when the server can be used.

    :param given_up: called when the chief has taken this process for lost; it ends the process.
    :param device: what this process computes on (`lib.devices`); empty for one that does not.
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
        """Tell the chief that this process will end, and return when it may: the chief has hung up, or the time is
        over. Without a chief that is at once: there is nobody to serve. After the end of the run, too: to call a chief
        whose machine or pod is gone would take seconds."""
        self._leaving.set()
        if connection := self._connection:
            with suppress(OSError):
                self._say_leaving(connection)
        self._released.wait(GRACE_SECONDS)

    def run(self) -> None:
        last = heard = False
        while not (last or heard):
            # One that is told to stop while its connection is broken calls once more: the chief may need it.
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
        """Say what is to be said until the chief hangs up or does not answer."""
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
