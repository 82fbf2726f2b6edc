"""Probe whether packets pass between two hosts: short-lived listeners on one, connections from the other.

Used before a host is a node, so no program listens on the declared ports yet. Standard library only.
"""

from __future__ import annotations

import errno
import json
import os
import selectors
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

QUESTION, ANSWER = b"trainyard port probe?\n", b"trainyard port probe!\n"
"""As long as each other, so that a listener never amplifies a packet with a forged source."""
CONTROL = "/run/trainyard-port-probe.sock"
"""Socket of the listener's process. Two runs share one listener, which ends after the last of them."""
NAME = "trainyard-probe"
"""Name of the process (`/proc/PID/comm`, at most 15 characters). The check of used ports leaves it out."""
TIMEOUT_S = 3.0
RESEND_S = 1.0
"""Seconds after which a datagram is sent again, because UDP may lose it silently."""
AT_ONCE = 400
"""Open connections, below the usual limit of 1024 files of a process."""

Port = tuple[int, str]
"""Number, and `tcp` or `udp`."""


@dataclass(frozen=True)
class Target:
    """A port of another host.

    :param listens: a listener of this module has the port. Otherwise it is a program of a node, which may be down: then
        only silence, or a network that refuses the packet, counts as unreached.
    """

    host: str
    address: str
    port: int
    protocol: str
    listens: bool


@dataclass
class _Attempt:
    target: Target
    socket: socket.socket
    result: str | None = None
    connected: bool = False
    sent: float = field(default=0.0)


def start(ports: Sequence[Port], run: str, seconds: float, control: str = CONTROL) -> list[Port]:
    """Listen on the free ones of these ports in a process of its own; return all ports that it has.

    :param run: identifier of the calling run, with which it calls `stop`.
    :param seconds: after this time the process ends by itself.
    """
    if known := _order(control, f"add {run} {seconds}"):
        return known
    sockets = {port: opened for port in ports if (opened := _open(port))}
    if not sockets:
        return []
    Path(control).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(control)
    finally:
        os.umask(before)
    listener.listen()
    between = os.fork()
    if between == 0:
        _serve_detached(listener, sockets, run, seconds, control)
    # Then only the listener's process has the sockets, under its own name.
    os.waitpid(between, 0)
    for each in (listener, *sockets.values()):
        each.close()
    return list(sockets)


def stop(run: str, control: str = CONTROL) -> None:
    """Release the listener; its process ends with the last run."""
    _order(control, f"end {run}")


def unreached(targets: Sequence[Target], timeout: float = TIMEOUT_S) -> list[tuple[Target, str]]:
    """Return the targets that this host does not reach, each with the reason.

    :param timeout: seconds for each group of `AT_ONCE` targets.
    """
    found: list[tuple[Target, str]] = []
    for first in range(0, len(targets), AT_ONCE):
        found += _attempt(targets[first : first + AT_ONCE], timeout)
    return found


def _order(control: str, text: str) -> list[Port]:
    """Send an order to the listener's process; return its ports, or an empty list if there is no such process."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(TIMEOUT_S)
            client.connect(control)
            client.sendall(text.encode())
            client.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: client.recv(65536), b""))
        return [(port, protocol) for port, protocol in json.loads(answer)]
    except (OSError, ValueError):
        return []


def _open(port: Port) -> socket.socket | None:
    """Return a socket that listens on all addresses; None if another program has the port."""
    number, protocol = port
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM if protocol == "tcp" else socket.SOCK_DGRAM)
    try:
        if protocol == "tcp":
            # Connections of an earlier listener may still wait for their end.
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(("", number))
        if protocol == "tcp":
            opened.listen()
    except OSError:
        opened.close()
        return None
    opened.setblocking(False)
    return opened


def _serve_detached(
    listener: socket.socket, sockets: dict[Port, socket.socket], run: str, seconds: float, control: str
) -> None:
    """Serve in a process without terminal and session, so that the caller's connection can end."""
    try:
        os.setsid()
        # Inherited by the process below.
        Path("/proc/self/comm").write_text(NAME, encoding="ascii")
        if os.fork() == 0:
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in range(3):
                os.dup2(null, descriptor)
            _serve(listener, sockets, run, time.monotonic() + seconds, control)
    finally:
        # Nothing of the caller may run twice.
        os._exit(0)


def _serve(
    listener: socket.socket, sockets: dict[Port, socket.socket], run: str, deadline: float, control: str
) -> None:
    runs = {run}
    with selectors.DefaultSelector() as selector:
        for each in (listener, *sockets.values()):
            selector.register(each, selectors.EVENT_READ)
        while runs and (left := deadline - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                try:
                    if key.fileobj is listener:
                        deadline = max(deadline, time.monotonic() + _obey(listener, runs, list(sockets)))
                    else:
                        _answer(key.fileobj)
                except OSError:
                    continue
    for each in sockets.values():
        each.close()
    Path(control).unlink(missing_ok=True)


def _obey(listener: socket.socket, runs: set[str], ports: Sequence[Port]) -> float:
    """Add or remove a run, and return the seconds for which it needs the listener."""
    client, _ = listener.accept()
    with client:
        client.settimeout(TIMEOUT_S)
        verb, run, seconds = [*client.recv(1024).decode(errors="replace").split(" "), "", "0"][:3]
        if verb == "add":
            runs.add(run)
        elif verb == "end":
            runs.discard(run)
        client.sendall(json.dumps(ports).encode())
    return float(seconds or 0)


def _answer(opened: Any) -> None:
    if opened.type == socket.SOCK_DGRAM:
        data, source = opened.recvfrom(len(QUESTION) + 1)
        if data == QUESTION:
            opened.sendto(ANSWER, source)
        return
    client, _ = opened.accept()
    with client:
        client.setblocking(False)
        client.send(ANSWER)


def _attempt(targets: Sequence[Target], timeout: float) -> Iterator[tuple[Target, str]]:
    deadline = time.monotonic() + timeout
    attempts = [_begin(target) for target in targets]
    with selectors.DefaultSelector() as selector:
        for attempt in attempts:
            if attempt.result is None:
                events = selectors.EVENT_READ if attempt.connected else selectors.EVENT_WRITE
                selector.register(attempt.socket, events, attempt)
        while selector.get_map() and (left := deadline - time.monotonic()) > 0:
            for key, _ in selector.select(min(left, RESEND_S)):
                _advance(selector, key.data)
            _resend([key.data for key in selector.get_map().values()])
    for attempt in attempts:
        attempt.socket.close()
        if attempt.result is None:
            attempt.result = "no answer"
        if attempt.result:
            yield attempt.target, attempt.result


def _begin(target: Target) -> _Attempt:
    kind = socket.SOCK_STREAM if target.protocol == "tcp" else socket.SOCK_DGRAM
    opened = socket.socket(socket.AF_INET, kind)
    opened.setblocking(False)
    attempt = _Attempt(target, opened)
    try:
        code = opened.connect_ex((target.address, target.port))
    except OSError as error:
        # The text is no address of this family.
        attempt.result = str(error)
        return attempt
    if code not in (0, errno.EINPROGRESS):
        attempt.result = _meaning(target, code)
    elif target.protocol == "udp":
        attempt.connected = True
        _resend([attempt])
    return attempt


def _resend(attempts: Sequence[_Attempt]) -> None:
    for attempt in attempts:
        if attempt.target.protocol == "udp" and time.monotonic() - attempt.sent >= RESEND_S:
            attempt.sent = time.monotonic()
            try:
                attempt.socket.send(QUESTION)
            except OSError:
                continue


def _advance(selector: selectors.BaseSelector, attempt: _Attempt) -> None:
    """Take the next step of a connection: it is made, then a listener of this module sends its answer."""
    target = attempt.target
    code = attempt.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code:
        attempt.result = _meaning(target, code)
    elif not attempt.connected:
        attempt.connected = True
        if target.listens:
            selector.modify(attempt.socket, selectors.EVENT_READ, attempt)
        else:
            attempt.result = ""
    else:
        try:
            data = attempt.socket.recv(len(ANSWER))
            attempt.result = "" if data == ANSWER else "another program answers"
        except BlockingIOError:
            return
        except OSError as error:
            attempt.result = _meaning(target, error.errno or 0)
    if attempt.result is not None:
        selector.unregister(attempt.socket)


def _meaning(target: Target, code: int) -> str:
    """Return the reason why a target is not reached; empty if it is."""
    if code == errno.ECONNREFUSED:
        return "refused" if target.listens else ""
    return os.strerror(code).lower()
