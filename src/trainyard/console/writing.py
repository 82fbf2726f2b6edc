"""Answers to browsers, which are sent for a bounded time: what is not taken would stay in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web

WRITE_SECONDS = 30.0
"""For a browser to take what it is sent."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def sent(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Every answer is sent here, where its time is limited."""
    return await finished(request, await handler(request))


async def finished(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    """A response whose body was sent; of a browser that does not take it, the connection ends."""
    try:
        async with asyncio.timeout(WRITE_SECONDS):
            await response.prepare(request)
            await response.write_eof()
    except TimeoutError:
        if request.transport:
            request.transport.abort()
    finally:
        if isinstance(response, web.Response):
            # Requests and answers refer to each other, and so stay until the interpreter looks for such circles.
            response.body = None
    return response
