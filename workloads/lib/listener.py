"""The chief's end of the connections that `control` describes."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from lib import devices
from lib.cluster_spec import Cluster
from lib.control import FINISHED, GIVEN_UP, LINE_BYTES, SILENT_SECONDS, port
from lib.peers import cut, failures, split

HERE, LEAVING, LOST = "here", "leaving", "lost"

RELEASE_SECONDS = 10.0
"""A leaving worker goes on working for so long: if the whole set was told to stop, the chief learns of it meanwhile."""
HELLO_SECONDS = 5.0
"""For a new connection to say who it is."""

_TICK_SECONDS = 0.25
_PROBE_SECONDS = 0.5
"""For all that have hung up to answer, once in every look."""
_PAUSED_SECONDS = 3.0
"""A chief for which so long passes between two looks was itself held up (by an import, by a frozen machine): it heard
nothing. What a look itself takes does not count: what comes meanwhile is read before the next one."""


@dataclass(eq=False)
class _Peer:
    """What the chief knows of one ps or worker; times by the monotonic clock."""

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
    """The chief's end: one thread for all connections.

    :param tell: called in that thread with the name of a task, HERE, LEAVING or LOST, and why. A ps that is another
        process than before is LOST: its variables are.
    :param stopping: whether the chief is about to end. A leaving worker is needed until then.
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
        """The names of all that have never called."""
        return [name for name, peer in self._peers.items() if not peer.process]

    def computes(self) -> dict[str, Any]:
        """What all workers that have called compute on together, for the run's account of itself."""
        return devices.together([peer.device for peer in self._peers.values() if peer.device])

    def stop(self, *, finished: bool = False) -> None:
        """Tell nothing more; the connections stay until the process ends.

        :param finished: whether the run has ended, so that the servers wait for nobody when they are told to stop.
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
            return  # hung up on a moment ago, for a newer one of the same task
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
                self._tell(peer.name, LEAVING, "it was told to stop")
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
        """A worker that wakes up must not go on with a call that another one does."""
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
        """What has changed by time alone, and whether who has hung up is gone."""
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
                # At each look: where only the process hangs, its machine still accepts connections, and TensorFlow
                # would wait 20 s for an answer on each new one before it gives the work to another worker.
                cut(peer.host, peer.port)
        self._looked = time.monotonic()

    def _gone(self, now: float) -> list[tuple[_Peer, str]]:
        """The peers that count as lost, and why. One that hung up but whose port does not refuse may call again."""
        there = [peer for peer in self._peers.values() if peer.process and not peer.lost]
        hung_up = {peer.name: f"[{peer.host}]:{peer.port}" for peer in there if peer.connection is None}
        errors = failures(hung_up, _PROBE_SECONDS)
        gone = []
        for peer in there:
            if now - peer.heard > SILENT_SECONDS:
                gone.append((peer, f"it has said nothing for {SILENT_SECONDS:.0f} s"))
            elif isinstance(errors.get(peer.name), ConnectionRefusedError):
                gone.append((peer, "its connection ended, and its port is closed"))
        return gone


def _device(words: list[str]) -> dict[str, Any] | None:
    """What a process says that it computes on, empty where it says nothing; None for what is none of our words."""
    match words:
        case []:
            return {}
        case [devices.GPU | devices.CPU as compute, gpus] if gpus.isdecimal():
            return {"compute": compute, "gpu_allocated": int(gpus)}
    return None


def _serve(number: int) -> socket.socket:
    """A listening socket on all addresses, of both families where the machine has both."""
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", number), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", number))
