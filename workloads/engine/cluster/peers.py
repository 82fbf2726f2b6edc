"""Wait for the other tasks by plain TCP, before TensorFlow's channels start to back off."""

from __future__ import annotations

import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

from engine.errors import InputError, StalledError

_ANSWER_SECONDS = 2.0
_POLL_SECONDS = 0.2


def unreachable(peers: Mapping[str, str]) -> dict[str, str]:
    """Return task name -> reason for every peer that does not accept a connection now; takes at most two seconds.

    :param peers: task name -> "host:port".
    """
    return {name: f"{peers[name]}: {error}" for name, error in failures(peers, _ANSWER_SECONDS).items()}


def failures(peers: Mapping[str, str], seconds: float) -> dict[str, OSError]:
    """Return task name -> error for every peer that does not accept a connection now.

    All peers are probed at once, each in its own thread. No thread is awaited beyond the limit, because it may hang in
    a name server that does not answer.

    :param peers: task name -> "host:port".
    :param seconds: limit for name resolution and connection, for all peers together.
    """
    errors: dict[str, OSError] = {name: TimeoutError(f"no answer in {seconds:g} s") for name in peers}

    def ask(name: str, address: str) -> None:
        try:
            socket.create_connection(split(address), seconds).close()
        except OSError as error:
            errors[name] = error
        else:
            del errors[name]

    threads = [threading.Thread(target=ask, args=each, daemon=True) for each in peers.items()]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return errors.copy()


def wait_for(
    peers: Mapping[str, str],
    timeout: float,
    silent: Callable[[], Collection[str]] = tuple,
    waiting: Callable[[], object] = lambda: None,
) -> None:
    """Return when every peer has called and accepts connections.

    gRPC remembers a failed name resolution or a refused connection for seconds. Here they cost only one retry, and the
    error names the missing peers.

    :param timeout: limit in seconds.
    :param silent: returns the names of peers that have not called yet.
    :param waiting: called before each retry.
    :raises StalledError: a peer was still missing at the limit.
    """
    deadline = time.monotonic() + timeout
    while True:
        quiet = silent()
        reasons = unreachable({name: peers[name] for name in quiet or peers})
        missing = {name: reasons.get(name, f"{peers[name]}: it has not called") for name in quiet or reasons}
        if not missing:
            return
        if time.monotonic() > deadline:
            text = "; ".join(f"{name} ({reason})" for name, reason in missing.items())
            raise StalledError(f"After {timeout:.0f} s no connection to {text}.")
        waiting()
        time.sleep(_POLL_SECONDS)


def split(address: str) -> tuple[str, int]:
    """Return host and port of "host:port", without the brackets of an IPv6 address."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def cut(host: str, port: int) -> int:
    """Shut down this process's connections to a lost peer, and return their number.

    A machine without power does not refuse connections, so TensorFlow, and the next checkpoint, would wait for it
    without end. TensorFlow notices that a connection is shut down, and its coordinator gives the work to another
    worker.

    :param host: the peer's numeric address.
    """
    found = 0
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # It has no peer, or was closed in the meantime.
            copy = os.dup(int(descriptor))
            try:
                found += _shut_down(copy, _plain(host), port)
            finally:
                os.close(copy)
    return found


def _shut_down(descriptor: int, host: str, port: int) -> bool:
    """Shut the descriptor down if it is a TCP connection to that peer, and return whether it is."""
    if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        return False
    connection = socket.socket(fileno=descriptor)
    try:
        if connection.family not in (socket.AF_INET, socket.AF_INET6):
            return False
        there = connection.getpeername()
        if (_plain(there[0]), there[1]) != (host, port):
            return False
        connection.shutdown(socket.SHUT_RDWR)
        return True
    finally:
        connection.detach()  # The caller still owns the descriptor.


def _plain(host: str) -> str:
    """Return the plain form of an IPv4 address that a dual-stack socket reports."""
    return host.removeprefix("::ffff:")


def require_free(address: str, port: int | None = None) -> None:
    """Check that no other program listens on a port of this host; TensorFlow's own error names no port.

    :param address: this task's "host:port"; TensorFlow binds the port on all of the host's addresses.
    :param port: another port of the same host, instead of that of the address.
    :raises InputError: the port is in use.
    """
    port = port or split(address)[1]
    try:
        socket.create_server(("", port)).close()
    except OSError as error:
        raise InputError(
            f"Port {port} of {address} cannot be used ({error.strerror}).", "Choose a free port."
        ) from error
