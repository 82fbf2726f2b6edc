"""Server-sent events: of a run, and of one pod's log."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from aiohttp import web

from ..kube.api import KubeError
from .app import CONSOLE, Console
from .bodies import WRITE_SECONDS
from .feed import Feed
from .guard import SESSION
from .pages import params_of
from .permissions import FRESH_SECONDS, GOOD_SECONDS
from .sessions import Session
from .user_api import LoginEnded

BEAT_SECONDS = 10.0
"""Interval of comments on an idle stream, which detect a dead connection."""
REVIEW_SECONDS = GOOD_SECONDS - BEAT_SECONDS - FRESH_SECONDS
"""Interval between reviews of a watcher's rights. With a beat and a review of maximum age added, a stream ends at most
one minute after its right was revoked."""
RETRY_MILLISECONDS = 2_000
STREAMS, OF_USER, OF_LOGIN = 300, 40, 20
"""Maximum open streams: in total, of one user, and of one login."""


class Streams:
    """The counter of open streams. Each stream holds a connection."""

    def __init__(self) -> None:
        self._open: dict[Session, int] = {}

    @contextmanager
    def counted(self, session: Session) -> Iterator[None]:
        """
        :raises KubeError: status 429, there are too many streams.
        """
        mine = self._open.get(session, 0)
        user = sum(count for each, count in self._open.items() if each.user == session.user)
        if mine >= OF_LOGIN or user >= OF_USER or sum(self._open.values()) >= STREAMS:
            raise KubeError("Too many live pages are open.", status=429)
        self._open[session] = mine + 1
        try:
            yield
        finally:
            self._open[session] -= 1
            if not self._open[session]:
                del self._open[session]


STREAMS_KEY = web.AppKey("streams", Streams)


@asynccontextmanager
async def opened(request: web.Request) -> AsyncIterator[web.StreamResponse]:
    """Open an event stream; end it silently if the browser disconnects or does not receive its data."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
    await response.prepare(request)
    try:
        await response.write(f"retry: {RETRY_MILLISECONDS}\n\n".encode())
        yield response
    except (ConnectionError, TimeoutError):
        pass


def event(kind: str, data: str, number: str = "") -> bytes:
    """Encode an event; its data is JSON and therefore one line."""
    head = f"id: {number}\n" if number else ""
    return f"{head}event: {kind}\ndata: {data}\n\n".encode()


async def send(response: web.StreamResponse, data: bytes) -> None:
    async with asyncio.timeout(WRITE_SECONDS):
        await response.write(data)


async def of_run(request: web.Request) -> web.StreamResponse:
    """Send the events of a run, first those that the browser has missed."""
    console, session, params = request.app[CONSOLE], request[SESSION], params_of(request, ("after",))
    namespace, run = params["namespace"], params["run"]
    with request.app[STREAMS_KEY].counted(session):
        feed = await console.feeds.join(session, namespace, run)
        with feed.watched_by(session):
            async with opened(request) as response:
                # A page that was hidden opens a new stream, for which its browser sends no Last-Event-ID.
                last = request.headers.get("Last-Event-ID") or params.get("after", "")
                place, reviewed = feed.ring.place(last), console.clock.monotonic()
                while True:
                    found = feed.ring.after(place)
                    if found:
                        place = found[-1].number
                        await send(response, b"".join(event(e.kind, e.data, feed.ring.id_of(e)) for e in found))
                    if why := _over(console, session, feed):
                        await send(response, event("end", json.dumps({"reason": why})))
                        return response
                    if console.clock.monotonic() - reviewed > REVIEW_SECONDS:
                        reviewed = console.clock.monotonic()
                        if not await _still(console, session, namespace, feed):
                            return response
                        continue
                    if not await feed.ring.wait(place, BEAT_SECONDS):
                        await send(response, b": \n\n")
    return response


def _over(console: Console, session: Session, feed: Feed) -> str:
    """Return why a stream is over, `login` or `rights`; empty if it continues."""
    if not console.sessions.alive(session):
        return "login"
    return "rights" if session in feed.dropped else ""


async def _still(console: Console, session: Session, namespace: str, feed: Feed) -> bool:
    """Return whether a session may stay on a feed; if its rights changed, its browser reconnects to another feed.

    A session whose login or right has ended stays, so that it receives the reason. The same holds while the API server
    does not answer, because nothing new is shown then.
    """
    try:
        return await console.feeds.review(session, namespace) == feed.granted
    except LoginEnded:
        console.sessions.end(session)
    except KubeError as error:
        if error.status == 403:
            feed.dropped.add(session)
    return True
