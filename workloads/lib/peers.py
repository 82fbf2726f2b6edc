"""Waiting for the other tasks by plain TCP, before TensorFlow's channels enter their back-off."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping

from lib.errors import InputError, StalledError

_CONNECT_SECONDS = 2.0
_POLL_SECONDS = 0.2


def unreachable(peers: Mapping[str, str]) -> dict[str, str]:
    """Task name -> reason, for every peer that does not accept a connection now.

    :param peers: task name -> "host:port".
    """
    reasons = {}
    for name, address in peers.items():
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
        except OSError as error:
            reasons[name] = f"{address}: {error}"
    return reasons


def wait_for(peers: Mapping[str, str], timeout: float) -> None:
    """Return when every peer has accepted a connection once.

    A name that is looked up too early and a refused connection are remembered by gRPC for seconds; here they cost one
    poll, and the error names who is missing.

    :param timeout: limit in seconds.
    :raises StalledError: a peer did not answer in time.
    """
    deadline = time.monotonic() + timeout
    missing: Mapping[str, str] = peers
    while True:
        reasons = unreachable(missing)
        if not reasons:
            return
        missing = {name: peers[name] for name in reasons}
        if time.monotonic() > deadline:
            missing_text = "; ".join(f"{name} ({reason})" for name, reason in reasons.items())
            raise StalledError(f"After {timeout:.0f} s no connection to {missing_text}.")
        time.sleep(_POLL_SECONDS)


def require_free(address: str) -> None:
    """Refuse a port of this host that something else listens on; TensorFlow's own error names no port.

    :param address: this task's "host:port"; TensorFlow binds the port on all of the host's addresses.
    :raises InputError: the port is taken.
    """
    port = int(address.rpartition(":")[2])
    try:
        socket.create_server(("", port)).close()
    except OSError as error:
        raise InputError(
            f"Port {port} of {address} cannot be used ({error.strerror}).", "Choose a free port."
        ) from error
