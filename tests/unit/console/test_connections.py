"""Connections are limited in number and time, and those of users stay where others come and go."""

from __future__ import annotations

import asyncio
import ssl
from asyncio import sslproto
from pathlib import Path

import pytest

from tests.unit.console.consoles import CHIEF, LIMIT, LOG, RUN, Stand, run
from tests.unit.console.load import Flood
from tests.unit.console.watching import until
from trainyard.console import bodies, connections
from trainyard.console.connections import address_of, is_shared

HEAD = "POST /login HTTP/1.1\r\nHost: localhost\r\nOrigin: https://localhost\r\nContent-Type: {}\r\n{}\r\n\r\n"
FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("peer", "address", "shared"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("::1", "::1", True),
        ("::ffff:127.0.0.1", "127.0.0.1", True),
        ("::ffff:192.0.2.7", "192.0.2.7", False),
        ("2001:db8::1", "2001:db8::/64", False),
        ("fe80::1%eth0", "fe80::/64", False),
        ("", "", False),
    ],
)
def test_where_a_connection_comes_from(peer: str, address: str, shared: bool) -> None:
    assert (address_of(peer), is_shared(address)) == (address, shared)


@pytest.mark.parametrize("shared", [True, False])
def test_who_has_no_login_pushes_out_no_user(shared: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "BEFORE_LOGIN" if shared else "OF_ADDRESS", 4)
    monkeypatch.setattr(connections, "SURE_SECONDS", 0.05)
    monkeypatch.setattr(connections, "is_shared", lambda address: shared)

    async def scenario(stand: Stand) -> None:
        await stand.log_in("viewer")
        assert (await stand.get("/api/v1/session"))[0] == 200
        (mine,) = stand.console.connections._open.values()
        flood = Flood(int(stand.url.rpartition(":")[2]))
        flood.begin("silent", 6)
        flood.begin("body", 6)
        await flood.all_opened(12)
        await until(lambda: len(stand.console.connections) == 5)
        assert mine.open
        assert (await stand.get("/api/v1/session"))[0] == 200
        assert list(stand.console.connections._open.values()).count(mine) == 1
        async with stand.another() as other:
            await other.log_in("operator")
        await flood.end()

    run(scenario, tmp_path)


def test_of_an_address_the_one_that_logs_in_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "OF_ADDRESS", 3)

    async def scenario() -> None:
        those = connections.Connections()
        opened = [connections._Connection("192.0.2.7", asyncio.Protocol(), 0.0) for _ in range(3)]
        for each in opened:
            each.opening = asyncio.create_task(asyncio.sleep(LIMIT))
            those._open[each.protocol] = each
        with those.logging_in(opened[0].protocol):
            assert those._make_room("192.0.2.7", 0.0) == 0.0
            assert list(those._open.values()) == [opened[0], opened[2]]
        those._open[opened[1].protocol] = opened[1]
        opened[1].opening = asyncio.create_task(asyncio.sleep(LIMIT))
        for each in opened:
            each.logs_in = True
        those._make_room("192.0.2.7", 0.0)
        # An address has no more, whatever they do.
        assert len(those) == 2 and opened[0] not in those._open.values()
        those.close()

    asyncio.run(scenario())


def test_a_login_has_so_many_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "OF_LOGIN", 3)

    async def scenario(stand: Stand) -> None:
        await stand.log_in("viewer")
        trusted = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
        port, cookie = int(stand.url.rpartition(":")[2]), stand.browser.headers["Cookie"]
        opened = []
        for _ in range(6):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusted)
            writer.write(f"GET /api/v1/session HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n\r\n".encode())
            await reader.readuntil(b"}")
            opened.append((reader, writer))
        await until(lambda: sum(reader.at_eof() or bool(reader.exception()) for reader, _ in opened) >= 3)
        assert len(stand.console.connections) == 3
        for _, writer in opened:
            writer.transport.abort()

    run(scenario, tmp_path)


def test_a_handshake_that_does_not_come_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HANDSHAKE_SECONDS", 0.2)

    async def scenario(stand: Stand) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(stand.url.rpartition(":")[2]))
        assert await reader.read() == b""
        writer.close()
        assert sslproto.SSLProtocol.max_size == 16 * 1024

    run(scenario, tmp_path)


@pytest.mark.parametrize(
    ("kind", "length", "sent", "status"),
    [
        (FORM, "Content-Length: 20000", b"token=" + b"x" * 19_000, b"408"),
        (FORM, "Transfer-Encoding: chunked", b"6\r\ntoken=", b"408"),
        (FORM, "Content-Length: 20481", b"", b"413"),
        (FORM, "Transfer-Encoding: chunked", b"6000\r\n" + b"x" * 0x6000, b"413"),
        # Nobody reads a body of another kind.
        ("multipart/form-data; boundary=a", "Content-Length: 20000", b"--a\r\n", b"401"),
    ],
)
def test_a_body_is_bounded(
    kind: str, length: str, sent: bytes, status: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.2)

    async def scenario(stand: Stand) -> None:
        trusted = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
        port = int(stand.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusted)
        writer.write(HEAD.format(kind, length).encode() + sent)
        assert (await reader.readline()).split()[1] == status
        writer.transport.abort()

    run(scenario, tmp_path)


def test_an_answer_that_is_not_taken_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "WRITE_SECONDS", 0.5)

    async def scenario(stand: Stand) -> None:
        def users() -> int:
            return sum(bool(each.login and each.open) for each in stand.console.connections._open.values())

        stand.api.set_log(LOG, *["x" * 8_000] * 130)
        await stand.log_in("viewer")
        trusted = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
        port, cookie = int(stand.url.rpartition(":")[2]), stand.browser.headers["Cookie"]
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusted, limit=1_000)
        path = f"{RUN}/logs/{CHIEF.rpartition('/')[2]}?tail=5000"
        for _ in range(8):  # More than the buffers on the way hold.
            writer.write(f"GET {path} HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n\r\n".encode())
        # The other one is the browser's own.
        await until(lambda: users() == 2)
        await until(lambda: users() == 1)
        writer.transport.abort()

    run(scenario, tmp_path)
