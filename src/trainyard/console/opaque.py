"""The opaque origin in which a TensorBoard runs: neither the console's nor that of another TensorBoard.

Its page comes from a pod that an operator may have a hand in. The policy `sandbox` takes the origin away from it, so
that no request of it brings a cookie and no other page can be read. Where TensorBoard needs an origin, a small script
before its own gives a substitute (opaque.js).
"""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator
from pathlib import Path

from aiohttp import web

PASSED = web.RequestKey("passed", bool)
"""Set on requests with a pass."""
POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'self'; script-src 'self' 'unsafe-eval' 'unsafe-inline'; "
    "style-src 'self' 'unsafe-inline' data:; img-src 'self' data: blob:; font-src 'self' data:; worker-src blob:; "
    "object-src 'none'; base-uri 'self'; form-action 'none'"
)
"""No `frame-ancestors`: frames of TensorBoard's own have an ancestor without an origin, which no list can name."""
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Server": "console",
}
ELSEWHERE = {
    **HEADERS,
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Of answers that are no TensorBoard's."""
WITH_PASS = {
    **HEADERS,
    "Content-Security-Policy": POLICY,
    # For a page without an origin its own files are those of another site. The path is the secret.
    "Cross-Origin-Resource-Policy": "cross-origin",
}
ALLOWED_HEADER = re.compile(r"(?:content-type|x-[a-z0-9-]{1,60})(?:, ?(?:content-type|x-[a-z0-9-]{1,60})){0,9}")
"""That a page may set; what is passed on is another list."""
HEAD = re.compile(rb"<head(?:\s[^>]{0,1000})?>", re.IGNORECASE)
HEAD_BYTES = 64 * 1024
"""From the beginning of a page, in which its head begins."""
SCRIPT = b"<script>" + Path(__file__).with_name("opaque.js").read_bytes() + b"</script>"


async def set_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Put the headers on every answer, whatever the TensorBoard has said."""
    passed = PASSED in request
    response.headers.update(WITH_PASS if passed else ELSEWHERE)
    if passed and request.headers.get("Origin") == "null":
        response.headers["Access-Control-Allow-Origin"] = "null"
        response.headers["Vary"] = "Accept-Encoding, Origin"
    if "Content-Encoding" not in response.headers:
        response.headers.setdefault("Cache-Control", "private")


def preflight(request: web.Request) -> web.Response:
    """The answer to a browser that asks whether a page without an origin may send a request."""
    wanted = request.headers.get("Access-Control-Request-Headers", "").lower()
    headers = {"Access-Control-Allow-Methods": "GET, POST", "Access-Control-Max-Age": "600"}
    if ALLOWED_HEADER.fullmatch(wanted):
        headers["Access-Control-Allow-Headers"] = wanted
    return web.Response(status=204, headers=headers)


def again(path: str) -> web.Response:
    """A page that leads on to a path at once.

    The browser loads a page without an origin again as if another site asked for it, and without the cookie. From this
    page, which has an origin, it brings the cookie along.
    """
    text = f'<!doctype html><meta http-equiv="refresh" content="0;url={html.escape(path)}"><title>TensorBoard</title>'
    return web.Response(text=text, content_type="text/html", headers={"Cache-Control": "no-store"})


async def with_script(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """A page with the script at the beginning of its head; one without a head stays as it is."""
    begin = b""
    async for chunk in chunks:
        begin += chunk
        if HEAD.search(begin) or len(begin) >= HEAD_BYTES:
            break
    yield HEAD.sub(lambda found: found[0] + SCRIPT, begin, count=1)
    async for chunk in chunks:
        yield chunk
