"""Bodies of requests, which are read for a bounded time and up to a bounded size."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from urllib.parse import parse_qsl

from aiohttp import web

BODY_SECONDS = 10.0
"""For the whole of a body: a client that stalls holds a connection and what it has sent."""
BODY_BYTES = 64 * 1024
FIELDS = 20
"""Of a form; ours have three at most."""
FORM = "application/x-www-form-urlencoded"
_FORM: web.RequestKey[Mapping[str, str]] = web.RequestKey("form", Mapping)


async def body(request: web.Request, limit: int = BODY_BYTES) -> bytes:
    """The body of a request.

    :param limit: its bytes.
    :raises web.HTTPRequestTimeout: it does not come in time.
    :raises web.HTTPRequestEntityTooLarge: it is too long.
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
        raise web.HTTPRequestTimeout(text="The rest of this request did not come in time.") from None
    return bytes(found)


async def form(request: web.Request, limit: int = BODY_BYTES) -> Mapping[str, str]:
    """The fields of a form as browsers send it by default; none of anything else.

    :raises web.HTTPRequestTimeout, web.HTTPRequestEntityTooLarge: as `body`.
    :raises web.HTTPBadRequest: it has too many fields.
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
