"""Open connections, limited in number: each holds memory, and a client needs no login to open one."""

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
"""Connections without a login: in all, and of one address."""
SURE_SECONDS = 2.0
"""That each has for its handshake and its request, however many come: more than 100 of them a second wait."""
LOGINS = 100
"""Connections whose token the API server is asked about, and which are not ended meanwhile."""
AFTER_LOGIN, OF_LOGIN = 400, 40
"""Connections with a login: in all, and of one login, which may have 20 event streams."""
HANDSHAKE_SECONDS = 5.0
"""For a client to agree on TLS, and to take leave at its end."""
TLS_BYTES = 16 * 1024
"""For what one connection receives: the largest record of TLS. asyncio takes 256 KiB, whether anything comes or not."""
BACKLOG = 1024
"""Connections that wait to be accepted. Where there is no room, the system drops the end of a client's handshake, and
seconds later answers its request with a reset."""
PAUSE_SECONDS = 0.5
"""Before the next connection is accepted, where the system has nothing left for one."""
LOOK_SECONDS = 0.05
"""Between two looks whether there is room for one."""
Factory = Callable[[], asyncio.Protocol]


def spare_memory() -> None:
    """Let asyncio take less memory for each connection with TLS."""
    sslproto.SSLProtocol.max_size = TLS_BYTES


def address_of(peer: str) -> str:
    """Where a connection comes from, for counting; of IPv6 the network of /64, for a host has all of it."""
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
    """Whether people without anything in common have this address: a port-forward gives all of them that of loopback.

    :param address: as `address_of` gives it.
    """
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


@dataclass(eq=False)
class _Connection:
    """One connection.

    :param protocol: of aiohttp, which has a transport from the end of the handshake to the connection's end.
    :param opening: the handshake.
    :param begun: by the clock of the loop.
    :param session: the last login that one of its requests had.
    :param logs_in: whether the API server is asked about a token of it.
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
        """End it at once, whatever it does."""
        if self.transport:
            self.transport.abort()
        elif self.opening:
            self.opening.cancel()


class Connections:
    """All connections of both ports. A new one always gets in: where there are too many, an old one ends."""

    def __init__(self) -> None:
        self._open: dict[asyncio.Protocol, _Connection] = {}

    def __len__(self) -> int:
        self.forget()
        return len(self._open)

    def forget(self) -> None:
        """Drop what is kept of connections that have ended."""
        self._open = {protocol: each for protocol, each in self._open.items() if each.open}

    def logged_in(self, protocol: asyncio.Protocol, session: Session) -> None:
        """A request with a login came by a connection, which no client without one can push out from now on."""
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
        """The API server is asked about a token that came by a connection."""
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
        """Accept connections for ever."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                found, peer = await loop.sock_accept(listener)
            except OSError as error:  # Out of descriptors, or the client has left.
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
        """End the handshakes; the server ends the rest."""
        for each in self._open.values():
            if not each.transport:
                each.drop()

    def _make_room(self, address: str, now: float) -> float:
        """End the oldest connection without a login, where one more would be too many: of this address, or of all.

        :return: seconds after which to look again; 0 where there is room.
        """
        self.forget()
        strangers = [each for each in self._open.values() if not each.login]
        mine = [each for each in strangers if each.address == address]
        if len(mine) >= OF_ADDRESS and not is_shared(address):
            # One whose token is being looked at goes only where all of them are.
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
    """Agree on TLS with a client. The socket is asyncio's to close.

    asyncio takes a socket out of its selector before it closes it. A socket that is closed before stays listed there:
    the next connection gets the same number, and is never read.
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
        # The handshake may have ended just now; then asyncio waits for the client to take leave.
        transport: asyncio.Transport | None = getattr(protocol, "transport", None)
        if transport:
            transport.abort()
        raise
    except OSError as error:  # It has left, speaks no TLS, or was too slow.
        LOG.debug("A connection was not opened: %s", error)


def listener(address: str | None, port: int) -> socket.socket:
    """A socket that listens.

    :param address: of this machine; None for all of them, of IPv6 as well where the machine has it.
    """
    if address is None and socket.has_dualstack_ipv6():
        try:
            made = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG)
        except OSError:  # It is built in and switched off.
            made = socket.create_server(("0.0.0.0", port), backlog=BACKLOG)  # noqa: S104 - a Service reaches it
    else:
        family = socket.AF_INET6 if address and ":" in address else socket.AF_INET
        made = socket.create_server((address or "0.0.0.0", port), family=family, backlog=BACKLOG)  # noqa: S104 - as above
    made.setblocking(False)
    return made
