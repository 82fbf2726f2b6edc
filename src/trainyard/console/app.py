"""The state shared by all requests: settings, logins, the API server, templates."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import jinja2
from aiohttp import web
from markupsafe import Markup

from ..core.untrusted import clean
from ..core.waiter import CLOCK, Clock
from .connections import Connections
from .console_config import Config
from .feeds import Feeds, ViewOfRun
from .lists import Lists
from .page_cache import Kept
from .permissions import Rights
from .sessions import Session, Sessions
from .shares import Turns
from .throttle import Throttle
from .user_api import Client

FOLDER = Path(__file__).parent
PAGES, PAGES_OF_USER = 12, 6
"""Pages made concurrently, in total and of one user: each holds its data from the API server in memory."""


@dataclass
class Console:
    """The state of the console, kept in memory only."""

    config: Config
    client: Client
    view_of_run: ViewOfRun
    clock: Clock = CLOCK
    turns: Turns = field(init=False, default_factory=partial(Turns, PAGES, PAGES_OF_USER))
    connections: Connections = field(init=False, default_factory=Connections)
    sessions: Sessions = field(init=False)
    throttle: Throttle = field(init=False)
    rights: Rights = field(init=False)
    lists: Lists = field(init=False)
    feeds: Feeds = field(init=False)
    kept: Kept = field(init=False)

    def __post_init__(self) -> None:
        self.sessions = Sessions(self.clock, self.config.idle)
        self.throttle = Throttle(self.clock)
        self.rights = Rights(self.client, self.clock)
        self.lists = Lists(self.client, self.rights, self.clock)
        self.feeds = Feeds(self.client, self.rights, self.lists, self.sessions, self.view_of_run, self.clock)
        self.kept = Kept(self.clock)

    @functools.cached_property
    def templates(self) -> jinja2.Environment:
        return jinja2.Environment(
            loader=jinja2.FileSystemLoader(FOLDER / "templates"),
            autoescape=True,
            finalize=_shown,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    def tensorboard_origin(self, host: str) -> str:
        """Return the origin of TensorBoards, `https://host:port`, for a browser that reaches the console at `host`."""
        return self._beside(host, self.config.port, self.config.tensorboard_port, self.config.public_tensorboard_port)

    def console_origin(self, host: str) -> str:
        """Return the origin of the console for a browser that reaches TensorBoards at `host`."""
        return self._beside(host, self.config.tensorboard_port, self.config.port, self.config.public_port)

    @staticmethod
    def _beside(host: str, mine: int, other: int, public: int) -> str:
        """Return the origin of the other port. A port-forward keeps the console's ports; a node port does not."""
        name, colon, port = host.rpartition(":")
        if not colon or not port.isdecimal():
            name, port = host, "443"
        return f"https://{name}:{other if port == str(mine) else public}"

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.clock.time(), UTC)

    def render(
        self,
        template: str,
        *,
        status: int = 200,
        session: Session | None = None,
        notice: str = "",
        **values: Any,
    ) -> web.Response:
        """Render a template, which gets `user` (name, csrf), `notice`, `site` and the values.

        :param notice: text at the top of the page; empty for none.
        """
        user = {"name": clean(session.user), "csrf": session.csrf} if session else None
        text = self.templates.get_template(f"{template}.html.j2").render(
            user=user, notice=notice, site=self.config.site, **values
        )
        # JSON can contain lone surrogates, which cannot be encoded.
        return web.Response(
            body=text.encode("utf-8", "replace"), status=status, content_type="text/html", charset="utf-8"
        )


def _shown(value: Any) -> Any:
    """Return a value for a page: text without control characters; markup of the templates stays unchanged."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


CONSOLE = web.AppKey("console", Console)
