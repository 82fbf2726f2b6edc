"""The server of the console: two applications, pages and TensorBoards, on two ports with TLS.

Parts: the two applications; the ports and the certificate. The server reloads a renewed certificate.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import ERROR

from ..core.waiter import CLOCK, Clock
from . import bodies, guard, log_pages, opaque, streams, tensorboard_proxy
from .actions import Actions
from .app import CONSOLE, FOLDER, Console
from .attempts import Attempts
from .bodies import BODY_BYTES
from .connections import listener, spare_memory
from .console_config import Config
from .login import Logins
from .pages import api, html, who
from .tensorboard_proxy import TensorBoards
from .user_api import Ask, Client, drive
from .views.page import Page

RUN = "/api/v1/runs/{namespace}/{run}"


def pages_app(console: Console, pages: Sequence[Page], boards: TensorBoards) -> web.Application:
    """Return the application of the first port: pages, JSON, events, actions, login."""
    app = web.Application(middlewares=[bodies.sent, guard.errors, guard.login], client_max_size=BODY_BYTES)
    app[CONSOLE] = console
    app[streams.STREAMS_KEY] = streams.Streams()
    app.on_response_prepare.append(guard.set_headers)
    logins, actions = Logins(), Actions()
    app.on_cleanup.append(actions.close)
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/login", logins.form)
    app.router.add_post("/login", logins.log_in)
    app.router.add_post("/logout", logins.log_out)
    app.router.add_static("/static/", FOLDER / "static", follow_symlinks=False)
    app.router.add_get("/api/v1/session", who)
    app.router.add_get(f"{RUN}/events", streams.of_run)
    app.router.add_get(f"{RUN}/attempts", Attempts(boards).handle)
    app.router.add_get(f"{RUN}/logs/{{pod}}", log_pages.Tails().handle)
    app.router.add_get(f"{RUN}/logs/{{pod}}/events", log_pages.follow)
    app.router.add_post(f"{RUN}/{{action:stop|continue|restart|delete}}", actions.handle)
    for page in pages:
        app.router.add_get(page.path, html(page))
        app.router.add_get(page.json_path, api(page))
    return app


def tensorboard_app(console: Console, boards: TensorBoards) -> web.Application:
    """Return the application of the second port."""
    app = web.Application(client_max_size=tensorboard_proxy.BODY_BYTES)
    app[CONSOLE] = console
    app.on_response_prepare.append(opaque.set_headers)
    app.on_startup.append(boards.start)
    app.on_cleanup.append(boards.close)
    for method in ("GET", "OPTIONS", "POST"):
        app.router.add_route(method, "/{path:.*}", boards.handle)
    return app


async def healthz(_: web.Request) -> web.Response:
    """Report that the console itself works; an unavailable API server is no reason to restart it."""
    return web.json_response({"status": "ok"})


LOG = logging.getLogger("console")
RELOAD_SECONDS = 20.0
SWEEP_SECONDS = 30.0
IDLE_SECONDS = 75.0
"""Timeout for the first and each further request of a connection, which holds memory and needs no login."""
LINGERING_SECONDS = 2.0
"""Timeout for the rest of a body without a reader."""
READ_BYTES = 16 * 1024
"""Buffered bytes of a body; at twice this size the client is paused."""
END_SECONDS = 5.0
"""Seconds for browsers to receive the rest of their data when the console stops; event streams never end by
themselves."""


@dataclass(frozen=True)
class Serving:
    """A console that is listening.

    :param port: actual port of pages.
    :param tensorboard_port: actual port of TensorBoards.
    """

    console: Console
    port: int
    tensorboard_port: int


@asynccontextmanager
async def serving(
    config: Config, pages: Sequence[Page], *, clock: Clock = CLOCK, boards: TensorBoards | None = None
) -> AsyncIterator[Serving]:
    """Listen until the end of the block."""
    spare_memory()
    certificate = Certificate(config.tls)
    run_page = next(page for page in pages if page.name == "run")
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(config.api, config.api_ca, clock))
        console = Console(config, client, partial(_view_of_run, run_page, clock), clock)
        boards = boards or TensorBoards()
        both = (
            (pages_app(console, pages, boards), config.port),
            (tensorboard_app(console, boards), config.tensorboard_port),
        )
        ports = []
        for app, port in both:
            runner = Runner(
                app,
                access_log=None,
                shutdown_timeout=END_SECONDS,
                handler_cancellation=True,
                keepalive_timeout=IDLE_SECONDS,
                lingering_time=LINGERING_SECONDS,
                read_bufsize=READ_BYTES,
            )
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            listening = stack.enter_context(listener(config.address, port))
            stack.push_async_callback(_end, asyncio.create_task(_accept(console, runner, listening, certificate)))
            ports.append(listening.getsockname()[1])
        tasks = [asyncio.create_task(certificate.keep_fresh()), asyncio.create_task(_sweep(console))]
        try:
            yield Serving(console, *ports)
        finally:
            console.connections.close()
            for task in tasks:
                await _end(task)


class Runner(web.AppRunner):
    """A runner that sets the application's headers also on answers to malformed requests, which reach no handler."""

    async def _make_server(self) -> web.Server:
        server = await super()._make_server()
        make = server.request_factory
        hooks = self.app.on_response_prepare

        def request(message: Any, *rest: Any) -> Any:
            made: Any = make(message, *rest)
            if message is ERROR:

                async def prepare(response: web.StreamResponse) -> None:
                    await hooks.send(made, response)

                made._prepare_hook = prepare
            return made

        server.request_factory = request
        return server


class Certificate:
    """A certificate and key in a folder. After a renewal, new connections use the new pair and open ones continue.

    :param folder: with tls.crt and tls.key.
    """

    def __init__(self, folder: Path) -> None:
        self._files = (folder / "tls.crt", folder / "tls.key")
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.set_alpn_protocols(["http/1.1"])
        self._loaded = self._read()
        self.context.load_cert_chain(*self._files)

    def refresh(self) -> bool:
        """Load the files if they have changed; if certificate and key do not match, retry at the next call."""
        try:
            found = self._read()
            if found == self._loaded:
                return False
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*self._files)
            self.context.load_cert_chain(*self._files)
        except (OSError, ssl.SSLError) as error:
            LOG.warning("The new certificate is not used: %s", error)
            return False
        self._loaded = found
        LOG.info("The certificate was renewed.")
        return True

    async def keep_fresh(self) -> None:
        while True:
            await asyncio.sleep(RELOAD_SECONDS)
            self.refresh()

    def _read(self) -> tuple[bytes, ...]:
        return tuple(file.read_bytes() for file in self._files)


async def _accept(console: Console, runner: web.AppRunner, on: socket.socket, certificate: Certificate) -> None:
    assert runner.server is not None
    await console.connections.accept(on, runner.server, certificate.context)


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def _sweep(console: Console) -> None:
    """End logins whose time is over, also those of closed browsers."""
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        console.sessions.sweep()
        console.connections.forget()


async def _view_of_run(page: Page, clock: Clock, namespace: str, run: str, ask: Ask) -> Any:
    params = {"namespace": namespace, "run": run}
    answers = await drive(page.read(params), ask)
    return page.build(answers, params, datetime.fromtimestamp(clock.time(), UTC))
