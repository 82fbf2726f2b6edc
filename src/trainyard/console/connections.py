"""Limit the number of open connections: each holds memory, and a client needs no login to open one."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import ssl
from asyncio import sslproto
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from .sessions import Session

LOG = logging.getLogger("console")
BEFORE_LOGIN, OF_ADDRESS = 200, 20
"""Maximum connections without a login: in total, and of one address."""
SURE_SECONDS = 2.0
"""Guaranteed time of each connection for its handshake and request; connections beyond 100 a second wait."""
LOGINS = 100
"""Maximum connections that are protected from being dropped while the API server reviews their token."""
AFTER_LOGIN, OF_LOGIN = 400, 40
"""Maximum connections with a login: in total, and of one login, which may have 20 event streams."""
HANDSHAKE_SECONDS = 5.0
"""Timeout of the TLS handshake, and of the TLS shutdown."""
TLS_BYTES = 16 * 1024
"""Receive buffer of one connection: the largest TLS record. asyncio allocates 256 KiB in advance."""
BACKLOG = 1024
"""Maximum connections that wait to be accepted. Without room, the kernel drops the end of a client's handshake, and
resets its request seconds later."""
PAUSE_SECONDS = 0.5
"""Pause before the next accept if the system has no resources for a connection."""
LOOK_SECONDS = 0.05
"""Maximum interval between two checks for room."""
Factory = Callable[[], asyncio.Protocol]


def spare_memory() -> None:
    """Reduce the memory that asyncio allocates for each TLS connection."""
    sslproto.SSLProtocol.max_size = TLS_BYTES


def address_of(peer: str) -> str:
    """Return the address of a peer for counting; for IPv6 its /64 network, because one host may use all of it."""
    try:
        found = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return peer
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped:
            return str(found.ipv4_mapped)
        if not found.is_loopback:
            return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)


def is_shared(address: str) -> bool:
    """Return whether unrelated users share this address: all port-forwards come from the loopback address.

    :param address: result of `address_of`.
    """
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


@dataclass(eq=False)
class _Connection:
    """A connection.

    :param protocol: of aiohttp; has a transport from the end of the handshake to the end of the connection.
    :param opening: task of the handshake.
    :param begun: time of the loop's clock.
    :param session: login of its last request with one.
    :param logs_in: whether the API server is reviewing a token from it.
    """

    address: str
    protocol: asyncio.Protocol
    begun: float
    opening: asyncio.Task[None] | None = None
    session: Session | None = None
    logs_in: bool = False

    @property
    def transport(self) -> asyncio.Transport | None:
        return getattr(self.protocol, "transport", None)

    @property
    def open(self) -> bool:
        return self.transport is not None or (self.opening is not None and not self.opening.done())

    @property
    def login(self) -> Session | None:
        return self.session if self.session and not self.session.ended else None

    def drop(self) -> None:
        """End the connection at once."""
        if self.transport:
            self.transport.abort()
        elif self.opening:
            self.opening.cancel()


class Connections:
    """The connections of both ports. A new one is always accepted; if there are too many, an old one is dropped."""

    def __init__(self) -> None:
        self._open: dict[asyncio.Protocol, _Connection] = {}

    def __len__(self) -> int:
        self.forget()
        return len(self._open)

    def forget(self) -> None:
        """Forget connections that have ended."""
        self._open = {protocol: each for protocol, each in self._open.items() if each.open}

    def logged_in(self, protocol: asyncio.Protocol, session: Session) -> None:
        """Mark a connection as logged in, so that connections without a login can no longer displace it."""
        known = self._open.get(protocol)
        if known is None or known.session is session:
            return
        self.forget()
        users = [each for each in self._open.values() if each.login and each is not known]
        mine = [each for each in users if each.login is session]
        known.session = session
        if len(mine) >= OF_LOGIN:
            self._drop(mine[0])
        elif len(users) >= AFTER_LOGIN:
            most, _ = Counter(each.login for each in users).most_common(1)[0]
            self._drop(next(each for each in users if each.login is most))

    @contextmanager
    def logging_in(self, protocol: asyncio.Protocol) -> Iterator[None]:
        """Protect a connection while the API server reviews its token."""
        known = self._open.get(protocol)
        if known is None or sum(each.logs_in for each in self._open.values()) >= LOGINS:
            yield
            return
        known.logs_in = True
        try:
            yield
        finally:
            known.logs_in = False

    async def accept(self, listener: socket.socket, factory: Factory, context: ssl.SSLContext) -> None:
        """Accept connections forever."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                found, peer = await loop.sock_accept(listener)
            except OSError as error:  # Out of descriptors, or the client has disconnected.
                LOG.warning("A connection was not accepted: %s", error)
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            address = address_of(str(peer[0]))
            while (seconds := self._make_room(address, loop.time())) > 0:
                await asyncio.sleep(min(seconds, LOOK_SECONDS))
            new = _Connection(address, factory(), loop.time())
            self._open[new.protocol] = new
            new.opening = asyncio.create_task(_open(found, new.protocol, context))

    def close(self) -> None:
        """Abort the handshakes; the server ends open connections."""
        for each in self._open.values():
            if not each.transport:
                each.drop()

    def _make_room(self, address: str, now: float) -> float:
        """Drop the oldest connection without a login if one more would exceed a limit, of this address or in total.

        :return: seconds after which to check again; 0 if there is room.
        """
        self.forget()
        strangers = [each for each in self._open.values() if not each.login]
        mine = [each for each in strangers if each.address == address]
        if len(mine) >= OF_ADDRESS and not is_shared(address):
            # Drop a connection under review only if all of them are.
            self._drop(next((each for each in mine if not each.logs_in), mine[0]))
        elif len(strangers) >= BEFORE_LOGIN:
            oldest = next(each for each in strangers if not each.logs_in)
            if (left := oldest.begun + SURE_SECONDS - now) > 0:
                return left
            self._drop(oldest)
        return 0.0

    def _drop(self, one: _Connection) -> None:
        one.drop()
        self._open.pop(one.protocol, None)


async def _open(found: socket.socket, protocol: asyncio.Protocol, context: ssl.SSLContext) -> None:
    """Do the TLS handshake with a client. Only asyncio may close the socket.

    asyncio removes a socket from its selector before it closes it. If other code closes it, it stays registered: the
    next connection gets the same descriptor, and is never read.
    """
    try:
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: protocol,
            found,
            ssl=context,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
            ssl_shutdown_timeout=HANDSHAKE_SECONDS,
        )
    except asyncio.CancelledError:
        # If the handshake has just ended, asyncio would wait for the TLS shutdown of the client.
        transport: asyncio.Transport | None = getattr(protocol, "transport", None)
        if transport:
            transport.abort()
        raise
    except OSError as error:  # The client has disconnected, does not use TLS, or is too slow.
        LOG.debug("A connection was not opened: %s", error)


def listener(address: str | None, port: int) -> socket.socket:
    """Return a listening socket.

    :param address: of this machine; None for all, including IPv6 if available.
    """
    if address is None and socket.has_dualstack_ipv6():
        try:
            made = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG)
        except OSError:  # IPv6 is built in but disabled.
            made = socket.create_server(("0.0.0.0", port), backlog=BACKLOG)  # noqa: S104 - a Service reaches it
    else:
        family = socket.AF_INET6 if address and ":" in address else socket.AF_INET
        made = socket.create_server((address or "0.0.0.0", port), family=family, backlog=BACKLOG)  # noqa: S104 - as above
    made.setblocking(False)
    return made
