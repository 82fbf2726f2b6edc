"""Read bodies of requests and send answers to browsers, both within limits.

Bodies have limits on time and size. Answers have a time limit, because data that a browser does not receive stays in
memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import parse_qsl

from aiohttp import web

BODY_SECONDS = 10.0
"""Timeout of a whole body: a stalled client holds a connection and the data that it has sent."""
BODY_BYTES = 64 * 1024
FIELDS = 20
"""Maximum fields of a form; forms of the console have at most three."""
FORM = "application/x-www-form-urlencoded"
_FORM: web.RequestKey[Mapping[str, str]] = web.RequestKey("form", Mapping)


async def body(request: web.Request, limit: int = BODY_BYTES) -> bytes:
    """Read the body of a request.

    :param limit: maximum bytes.
    :raises web.HTTPRequestTimeout: the body does not arrive in time.
    :raises web.HTTPRequestEntityTooLarge: the body is too long.
    """
    if (request.content_length or 0) > limit:
        raise web.HTTPRequestEntityTooLarge(limit, request.content_length or 0)
    found = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.content.iter_any():
                found += chunk
                if len(found) > limit:
                    raise web.HTTPRequestEntityTooLarge(limit, len(found))
    except TimeoutError:
        raise web.HTTPRequestTimeout(text="The rest of this request did not arrive in time.") from None
    return bytes(found)


async def form(request: web.Request, limit: int = BODY_BYTES) -> Mapping[str, str]:
    """Read the fields of a URL-encoded form; return none for other content types.

    :raises web.HTTPRequestTimeout, web.HTTPRequestEntityTooLarge: as `body`.
    :raises web.HTTPBadRequest: the form has too many fields.
    """
    if request.content_type != FORM:
        return {}
    if _FORM not in request:
        text = (await body(request, limit)).decode("utf-8", "replace")
        try:
            pairs = parse_qsl(text, keep_blank_values=True, errors="replace", max_num_fields=FIELDS)
        except ValueError:
            raise web.HTTPBadRequest(text="This form has too many fields.") from None
        request[_FORM] = dict(reversed(pairs))
    return request[_FORM]


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
