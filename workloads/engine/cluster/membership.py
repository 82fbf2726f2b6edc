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

The chief's side of the connections that `control` describes.
"""

from __future__ import annotations

import selectors
import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from engine.cluster import devices
from engine.cluster.cluster_spec import Cluster
from engine.cluster.peers import cut, failures, split
from engine.cluster.preemption import GRACE_SECONDS

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
    :param device: device that this process computes on (`engine.cluster.devices`); empty for a ps.
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


HERE, LEAVING, LOST = "here", "leaving", "lost"

RELEASE_SECONDS = 10.0
"""Time for which a leaving worker continues to work. If the whole set received SIGTERM, the chief notices meanwhile."""
HELLO_SECONDS = 5.0
"""Time within which a new connection must identify itself."""

_TICK_SECONDS = 0.25
_PROBE_SECONDS = 0.5
"""Time for all disconnected peers to answer, once per check."""
_PAUSED_SECONDS = 3.0
"""If more time passes between two checks, the chief itself was blocked (by an import, by a frozen machine) and received
nothing. The duration of a check does not count, because messages that arrive meanwhile are read before the next
check."""


@dataclass(eq=False)
class _Peer:
    """The chief's knowledge of one ps or worker; times are of the monotonic clock."""

    name: str
    port: int
    host: str = ""
    process: str = ""
    connection: _Connection | None = None
    heard: float = 0.0
    left: float | None = None
    lost: bool = False
    device: Mapping[str, Any] = field(default_factory=dict)

    @property
    def worker(self) -> bool:
        return self.name.startswith("worker")


@dataclass(eq=False)
class _Connection:
    socket: socket.socket
    host: str
    since: float
    peer: _Peer | None = None
    unread: bytes = b""


class Listener(threading.Thread):
    """The chief's side: one thread for all connections.

    :param tell: called in that thread with the name of a task, HERE, LEAVING or LOST, and the reason. A ps that is
        another process than before is LOST, because its variables are lost.
    :param stopping: returns whether the chief is about to end. Until then it needs leaving workers.
    """

    def __init__(self, cluster: Cluster, tell: Callable[[str, str, str], None], stopping: Callable[[], bool]) -> None:
        super().__init__(name="control", daemon=True)
        self._tell, self._stopping = tell, stopping
        peers = cluster.peers("ps", "worker")
        self._peers = {name: _Peer(name, split(address)[1]) for name, address in peers.items()}
        self._connections: set[_Connection] = set()
        self._most = 4 * len(peers) + 16
        self._server = _serve(port(cluster))
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._server, selectors.EVENT_READ)
        self._stopped = False
        self._looked = time.monotonic()

    def missing(self) -> list[str]:
        """Return the names of all tasks that have never connected."""
        return [name for name, peer in self._peers.items() if not peer.process]

    def computes(self) -> dict[str, Any]:
        """Return the combined device of all connected workers, for the run's report."""
        return devices.together([peer.device for peer in self._peers.values() if peer.device])

    def stop(self, *, finished: bool = False) -> None:
        """Stop reporting; the connections stay open until the process ends.

        :param finished: whether the run has ended, so that servers do not wait for the chief after SIGTERM.
        """
        self._stopped = True
        if finished:
            self.join()
            for connection in self._connections:
                with suppress(OSError):
                    connection.socket.send(FINISHED)

    def run(self) -> None:
        while not self._stopped:
            for key, _ in self._selector.select(_TICK_SECONDS):
                self._accept() if key.data is None else self._read(key.data)
            self._look(time.monotonic())

    def _accept(self) -> None:
        with suppress(OSError):
            accepted, address = self._server.accept()
            if len(self._connections) >= self._most:
                accepted.close()
                return
            accepted.setblocking(False)
            connection = _Connection(accepted, address[0], time.monotonic())
            self._connections.add(connection)
            self._selector.register(accepted, selectors.EVENT_READ, connection)

    def _read(self, connection: _Connection) -> None:
        if connection not in self._connections:
            return  # just closed, in favour of a newer one of the same task
        data = b""
        with suppress(OSError):
            data = connection.socket.recv(LINE_BYTES)
        *lines, connection.unread = (connection.unread + data).split(b"\n")
        for line in lines:
            self._understand(connection, line.decode("ascii", "replace").split())
        if not data or len(connection.unread) > LINE_BYTES:
            self._hang_up(connection)

    def _understand(self, connection: _Connection, words: list[str]) -> None:
        match words:
            case ["hello", role, index, process, *computes] if connection.peer is None:
                device, peer = _device(computes), self._peers.get(f"{role} {index}")
                if peer and device is not None:
                    peer.device = device
                    self._greet(connection, peer, process)
            case ["leaving"] if (peer := connection.peer) and peer.left is None:
                peer.left = time.monotonic()
                self._tell(peer.name, LEAVING, "it received SIGTERM")
        if peer := connection.peer:
            peer.heard = time.monotonic()

    def _greet(self, connection: _Connection, peer: _Peer, process: str) -> None:
        if peer.connection:
            self._hang_up(peer.connection)
        renewed = peer.process not in ("", process)
        connection.peer, peer.connection = peer, connection
        peer.host, peer.process = connection.host, process
        if renewed and peer.worker:
            peer.left, peer.lost = None, False
            self._tell(peer.name, HERE, "it was replaced")
        elif renewed:
            self._tell(peer.name, LOST, "it is another process than before")
        elif peer.lost:
            self._give_up(connection)

    def _give_up(self, connection: _Connection) -> None:
        """Send `lost` to a worker that wakes up: it must not continue a call that another worker has taken over."""
        with suppress(OSError):
            connection.socket.send(GIVEN_UP)
        self._hang_up(connection)

    def _hang_up(self, connection: _Connection) -> None:
        if connection not in self._connections:
            return
        self._selector.unregister(connection.socket)
        connection.socket.close()
        self._connections.discard(connection)
        if connection.peer and connection.peer.connection is connection:
            connection.peer.connection = None

    def _look(self, now: float) -> None:
        """Check what has changed by time alone, and whether disconnected peers are gone."""
        paused = now - self._looked > _PAUSED_SECONDS
        for connection in list(self._connections):
            if connection.peer is None and now - connection.since > HELLO_SECONDS:
                self._hang_up(connection)
        for peer in self._peers.values():
            if paused:
                peer.heard = now
            released = peer.left is not None and now - peer.left > RELEASE_SECONDS and not self._stopping()
            if peer.worker and released and peer.connection:
                self._hang_up(peer.connection)
        for peer, why in self._gone(now):
            peer.lost = True
            if peer.worker and peer.connection:
                self._give_up(peer.connection)
            self._tell(peer.name, LOST, why)
        for peer in self._peers.values():
            if peer.worker and peer.lost:
                # On each check: if only the process hangs, its machine still accepts connections. TensorFlow would wait
                # 20 s for an answer on each new one before it gives the work to another worker.
                cut(peer.host, peer.port)
        self._looked = time.monotonic()

    def _gone(self, now: float) -> list[tuple[_Peer, str]]:
        """Return the lost peers with the reason. A disconnected peer whose port does not refuse may reconnect."""
        there = [peer for peer in self._peers.values() if peer.process and not peer.lost]
        hung_up = {peer.name: f"[{peer.host}]:{peer.port}" for peer in there if peer.connection is None}
        errors = failures(hung_up, _PROBE_SECONDS)
        gone = []
        for peer in there:
            if now - peer.heard > SILENT_SECONDS:
                gone.append((peer, f"it has sent nothing for {SILENT_SECONDS:.0f} s"))
            elif isinstance(errors.get(peer.name), ConnectionRefusedError):
                gone.append((peer, "its connection ended, and its port is closed"))
        return gone


def _device(words: list[str]) -> dict[str, Any] | None:
    """Return the device that a process reports, empty if it reports none; None for unknown words."""
    match words:
        case []:
            return {}
        case [devices.GPU | devices.CPU as compute, gpus] if gpus.isdecimal():
            return {"compute": compute, "gpu_allocated": int(gpus)}
    return None


def _serve(number: int) -> socket.socket:
    """Return a listening socket on all addresses, of both families if the machine has both."""
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", number), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", number))
