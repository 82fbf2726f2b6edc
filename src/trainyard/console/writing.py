"""Send answers to browsers within a limited time, because data that a browser does not receive stays in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web

WRITE_SECONDS = 30.0
"""Timeout for a browser to receive data."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def sent(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Send each answer within the time limit."""
    return await finished(request, await handler(request))


async def finished(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    """Send a response and return it; abort the connection of a browser that does not receive it."""
    try:
        async with asyncio.timeout(WRITE_SECONDS):
            await response.prepare(request)
            await response.write_eof()
    except TimeoutError:
        if request.transport:
            request.transport.abort()
    finally:
        if isinstance(response, web.Response):
            # Requests and answers refer to each other, so they would stay until the garbage collector finds the cycle.
            response.body = None
    return response
