"""A connection that is dropped leaves nothing in the event loop, whatever its handshake has come to."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import selectors
import socket
import ssl
from pathlib import Path

import pytest

from tests.unit.certificates import self_signed
from tests.unit.console.consoles import LIMIT
from tests.unit.console.watching import until
from trainyard.console import connections


class Protocol(asyncio.Protocol):
    """As that of aiohttp: it has a transport from the end of the handshake to the connection's end."""

    transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None


class Client:
    """One that sends each part of its handshake when it is asked to."""

    def __init__(self, peer: socket.socket, certificate: Path) -> None:
        trusted = ssl.create_default_context(cafile=str(certificate))
        self._received, self._sent = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = trusted.wrap_bio(self._received, self._sent, server_hostname="localhost")
        self.socket = peer

    def part(self) -> bool:
        """Send the next part; whether it was the last."""
        with contextlib.suppress(BlockingIOError):
            self._received.write(self.socket.recv(65536))
        try:
            self._tls.do_handshake()
            done = True
        except ssl.SSLWantReadError:
            done = False
        self.socket.send(self._sent.read())
        return done


def context(folder: Path) -> ssl.SSLContext:
    certificate, key = self_signed()
    (folder / "tls.crt").write_text(certificate)
    (folder / "tls.key").write_text(key)
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    return made


def selected(loop: asyncio.AbstractEventLoop) -> set[int]:
    """Numbers of the files that the loop looks at."""
    found: selectors.BaseSelector = loop._selector  # type: ignore[attr-defined]
    return set(found.get_map())


@pytest.mark.parametrize("moment", ["before", "begun", "ended", "later"])
def test_a_dropped_connection_is_looked_at_no_more(moment: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        loop, (mine, theirs) = asyncio.get_running_loop(), socket.socketpair()
        reading, writing = os.pipe()
        for each in (mine, theirs):
            each.setblocking(False)
        served = context(tmp_path)
        one = connections._Connection("192.0.2.7", Protocol(), loop.time())
        client, number, before = Client(theirs, tmp_path / "tls.crt"), mine.fileno(), selected(loop)
        one.opening = loop.create_task(connections._open(mine, one.protocol, served))
        del mine
        # It is written to before the socket is, so that the loop calls this one first.
        loop.add_reader(reading, lambda: (os.read(reading, 1), one.drop()))
        if moment != "before":
            await until(lambda: number in selected(loop))
            client.part()
        if moment in ("ended", "later"):
            await until(lambda: bool(select.select([theirs], [], [], 0)[0]))
        if moment == "later":
            assert client.part()
            await until(lambda: one.transport is not None)
        os.write(writing, b"x")
        if moment == "ended":
            assert client.part()
        await until(lambda: not one.open)
        await until(lambda: number not in selected(loop))
        loop.remove_reader(reading)
        assert selected(loop) == before
        # The client learns it at once, and not after the time for taking leave.
        async with asyncio.timeout(LIMIT):
            while True:
                try:
                    if not theirs.recv(65536):
                        break
                except BlockingIOError:
                    await asyncio.sleep(0.01)
                except ConnectionError:
                    break
        assert loop.time() - one.begun < connections.HANDSHAKE_SECONDS
        theirs.close()
        os.close(reading)
        os.close(writing)

    asyncio.run(scenario())
