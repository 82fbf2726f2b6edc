"""Load on a console: a console in a process of its own, its memory, and clients that hold connections."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import ssl
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from tests.unit.certificates import self_signed
from tests.unit.console.fake import FakeApi, listening
from trainyard.console.connections import spare_memory

PROGRAM = """
import asyncio, dataclasses, os
from trainyard.console import __main__ as program
from trainyard.console.console_config import from_environment
asyncio.run(program.serve(dataclasses.replace(from_environment(os.environ), address="127.0.0.1")))
"""
BODY = 20_000
"""Bytes that a stalled body promises; a few less are sent."""
STALLED = {
    "silent": None,
    "handshake": b"",
    "head": b"GET /login HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
    "body": b"POST /login HTTP/1.1\r\nHost: localhost\r\nOrigin: https://localhost\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\ntoken=" % BODY + b"x" * (BODY - 10),
}
"""What a client without a credential sends before it stalls; None: not even a handshake."""


@dataclass(frozen=True)
class Process:
    """One console."""

    url: str
    port: int
    pid: int
    trusted: ssl.SSLContext

    @property
    def memory(self) -> float:
        """The most that it has had, in MB (10^6 bytes)."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert found
        return int(found[1]) * 1024 / 1e6

    @property
    def cpu(self) -> float:
        """Seconds of a processor that it has had."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @contextlib.asynccontextmanager
    async def browser(self) -> AsyncIterator[aiohttp.ClientSession]:
        connector = aiohttp.TCPConnector(ssl=self.trusted, limit=0)
        async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as made:
            yield made

    async def log_in(self, browser: aiohttp.ClientSession, token: str) -> str:
        """Log in; the value of the header for actions."""
        form, own = {"token": token}, {"Origin": self.url}
        async with browser.post(f"{self.url}/login", data=form, headers=own, allow_redirects=False) as got:
            assert got.status == 303, await got.text()
            browser.headers["Cookie"] = f"__Host-console={got.cookies['__Host-console'].value}"
        async with browser.get(f"{self.url}/about") as got:
            found = re.search(r'name="session" value="([^"]+)"', await got.text())
        assert found
        return found[1]


@contextlib.asynccontextmanager
async def console(folder: Path, api: FakeApi) -> AsyncIterator[Process]:
    """A console before an API server of the tests, which is in this process."""
    spare_memory()
    certificate, key = self_signed()
    for name, text in (("tls.crt", certificate), ("tls.key", key), ("ca.crt", certificate)):
        (folder / name).write_text(text)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    trusted = ssl.create_default_context(cafile=folder / "ca.crt")
    ports = free_ports(2)
    async with listening(api.handle, serving) as url:
        settings: dict[str, Any] = {"API": url, "API_CA": folder / "ca.crt", "TLS": folder}
        settings |= {"PORT": ports[0], "TENSORBOARD_PORT": ports[1]}
        environment = {**os.environ, **{f"CONSOLE_{name}": str(value) for name, value in settings.items()}}
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM, env=environment)
        try:
            await _answers(ports[0])
            yield Process(f"https://127.0.0.1:{ports[0]}", ports[0], process.pid, trusted)
        finally:
            process.terminate()
            await process.wait()


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        taken = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(each.getsockname()[1]) for each in taken]


async def _answers(port: int) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.1)
            else:
                writer.close()
                return


@dataclass
class Flood:
    """Clients without a credential that open connections to a port of this machine and stall.

    :param context: for their TLS; their certificates are not checked.
    :param renewed: after how many seconds one whose connection has ended opens another; None for never.
    """

    port: int
    renewed: float | None = None
    context: ssl.SSLContext = field(default_factory=ssl._create_unverified_context)
    opened: Counter[str] = field(default_factory=Counter)
    failed: int = 0
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def begin(self, kind: str, number: int, at_once: int = 50) -> None:
        """Let so many clients of a kind of `STALLED` begin."""
        turns = asyncio.Semaphore(at_once)
        self._tasks += [asyncio.create_task(self._client(kind, turns)) for _ in range(number)]

    async def all_opened(self, number: int) -> None:
        async with asyncio.timeout(120):
            while self.opened.total() + self.failed < number:
                await asyncio.sleep(0.05)

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _client(self, kind: str, turns: asyncio.Semaphore) -> None:
        while True:
            await self._stall(kind, turns)
            if self.renewed is None:
                return
            await asyncio.sleep(self.renewed)

    async def _stall(self, kind: str, turns: asyncio.Semaphore) -> None:
        sent = STALLED[kind]
        writer = None
        try:
            async with turns:
                tls = None if sent is None else self.context
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=tls, limit=1024)
                writer.write(sent or b"")
                self.opened[kind] += 1
            while await reader.read(1024):
                pass
        except OSError:
            self.failed += 1
        finally:
            if writer:
                writer.transport.abort()


async def timed(work: Callable[[], Any]) -> float:
    """Seconds that something takes."""
    begin = time.monotonic()
    await work()
    return time.monotonic() - begin


def stretch() -> float:
    """How many seconds of the clock this machine takes for one of its processors: 1 where it does nothing else."""
    begin, used = time.monotonic(), time.process_time()
    while time.process_time() - used < 0.2:
        pass
    return max(1.0, (time.monotonic() - begin) / (time.process_time() - used))
