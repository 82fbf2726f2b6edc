"""The two applications of the console: pages and TensorBoards."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from . import guard, logs, opaque, streams, tensorboard, writing
from .actions import Actions
from .attempts import Attempts
from .bodies import BODY_BYTES
from .console import CONSOLE, FOLDER, Console
from .login import Logins
from .pages import api, html, who
from .tensorboard import TensorBoards
from .views.page import Page

RUN = "/api/v1/runs/{namespace}/{run}"


def pages_app(console: Console, pages: Sequence[Page], boards: TensorBoards) -> web.Application:
    """Return the application of the first port: pages, JSON, events, actions, login."""
    app = web.Application(middlewares=[writing.sent, guard.errors, guard.login], client_max_size=BODY_BYTES)
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
    app.router.add_get(f"{RUN}/logs/{{pod}}", logs.Tails().handle)
    app.router.add_get(f"{RUN}/logs/{{pod}}/events", logs.follow)
    app.router.add_post(f"{RUN}/{{action:stop|continue|restart|delete}}", actions.handle)
    for page in pages:
        app.router.add_get(page.path, html(page))
        app.router.add_get(page.json_path, api(page))
    return app


def tensorboard_app(console: Console, boards: TensorBoards) -> web.Application:
    """Return the application of the second port."""
    app = web.Application(client_max_size=tensorboard.BODY_BYTES)
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
