"""The opaque origin in which a TensorBoard runs, isolated from the console and from other TensorBoards.

Its page comes from a pod that a user may control. The policy `sandbox` removes the origin of the page, so its requests
carry no cookie and it cannot read other pages. Where TensorBoard needs an origin, a small script that is loaded first
provides a substitute (opaque.js).
"""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator
from pathlib import Path

from aiohttp import web

PASSED = web.RequestKey("passed", bool)
"""Set on requests with a valid pass."""
POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'self'; script-src 'self' 'unsafe-eval' 'unsafe-inline'; "
    "style-src 'self' 'unsafe-inline' data:; img-src 'self' data: blob:; font-src 'self' data:; worker-src blob:; "
    "object-src 'none'; base-uri 'self'; form-action 'none'"
)
"""Without `frame-ancestors`: frames of TensorBoard have an ancestor without an origin, which no list can name."""
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
"""Headers of answers that do not come from a TensorBoard."""
WITH_PASS = {
    **HEADERS,
    "Content-Security-Policy": POLICY,
    # For a page without an origin, its own files are cross-origin. The path is the secret.
    "Cross-Origin-Resource-Policy": "cross-origin",
}
ALLOWED_HEADER = re.compile(r"(?:content-type|x-[a-z0-9-]{1,60})(?:, ?(?:content-type|x-[a-z0-9-]{1,60})){0,9}")
"""Headers that a page may set; another list limits the headers that are forwarded."""
HEAD = re.compile(rb"<head(?:\s[^>]{0,1000})?>", re.IGNORECASE)
HEAD_BYTES = 64 * 1024
"""Maximum bytes to search for the head of a page."""
SCRIPT = b"<script>" + Path(__file__).with_name("opaque.js").read_bytes() + b"</script>"


async def set_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Set the headers on every answer, overriding those of the TensorBoard."""
    passed = PASSED in request
    response.headers.update(WITH_PASS if passed else ELSEWHERE)
    if passed and request.headers.get("Origin") == "null":
        response.headers["Access-Control-Allow-Origin"] = "null"
        response.headers["Vary"] = "Accept-Encoding, Origin"
    if "Content-Encoding" not in response.headers:
        response.headers.setdefault("Cache-Control", "private")


def preflight(request: web.Request) -> web.Response:
    """Answer a CORS preflight request of a page without an origin."""
    wanted = request.headers.get("Access-Control-Request-Headers", "").lower()
    headers = {"Access-Control-Allow-Methods": "GET, POST", "Access-Control-Max-Age": "600"}
    if ALLOWED_HEADER.fullmatch(wanted):
        headers["Access-Control-Allow-Headers"] = wanted
    return web.Response(status=204, headers=headers)


def again(path: str) -> web.Response:
    """Return a page that redirects to a path at once.

    When the user reloads a page without an origin, the browser treats the request as cross-site and omits the cookie.
    A request from the returned page, which has an origin, carries the cookie.
    """
    text = f'<!doctype html><meta http-equiv="refresh" content="0;url={html.escape(path)}"><title>TensorBoard</title>'
    return web.Response(text=text, content_type="text/html", headers={"Cache-Control": "no-store"})


async def with_script(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Insert the script at the beginning of a page's head; leave a page without a head unchanged."""
    begin = b""
    async for chunk in chunks:
        begin += chunk
        if HEAD.search(begin) or len(begin) >= HEAD_BYTES:
            break
    yield HEAD.sub(lambda found: found[0] + SCRIPT, begin, count=1)
    async for chunk in chunks:
        yield chunk
