"""TensorBoards, on a port of their own: their pages need `unsafe-eval`, and what they show comes from runs."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web
from ansible.module_utils.trainyard.kube.api import KubeError
from multidict import CIMultiDict
from yarl import URL

from .api import LoginEnded
from .console import CONSOLE
from .guard import HOST, own_origin, session_of
from .rights import of_tensorboard

PORT = 6006
CONNECT_SECONDS, SILENCE_SECONDS = 5.0, 30.0
BODY_BYTES = 1024 * 1024
ASK_SECONDS, ASK_BYTES = 10.0, 2 * 1024 * 1024
"""For one answer that the console itself asks for."""
NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
"""Of a namespace and a claim. Both become the name of a host, and a record of a run can name anything as its claim."""
PATH = re.compile(r"/tensorboard/(?P<namespace>[^/]+)/(?P<claim>[^/]+)(?P<rest>/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)?")
TRICKS = re.compile(r"/\.{1,2}(?:/|$)|//|%(?:2e|2f|5c|00|25|0[0-9a-f]|1[0-9a-f]|7f)", re.IGNORECASE)
"""What a proxy and the server behind it might read in two ways: dots, slashes and percent signs in other clothes."""
ASKED = ("Accept", "Accept-Encoding", "Accept-Language", "Content-Type", "If-Modified-Since", "If-None-Match", "Range")
"""Headers that go to a TensorBoard: no login, no cookie, nothing of who asks."""
ANSWERED = (
    "Accept-Ranges", "Cache-Control", "Content-Encoding", "Content-Length", "Content-Range", "Content-Type", "ETag",
    "Expires", "Last-Modified", "Vary",
)  # fmt: skip
"""Headers that come back: no cookie, no rule about other origins."""
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-eval' 'unsafe-inline'; style-src 'self' 'unsafe-inline' data:; "
    "img-src 'self' data: blob:; font-src 'self' data:; object-src 'none'; base-uri 'self'; form-action 'self'; "
    "frame-ancestors 'self'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Server": "console",
}


def in_cluster(namespace: str, claim: str) -> str:
    """Where the TensorBoard of a claim is, by the cluster's DNS."""
    return f"http://tensorboard-{claim}.{namespace}.svc:{PORT}"


def named(namespace: str, claim: str) -> bool:
    """Whether these can be the names of a namespace and of a claim with a TensorBoard."""
    return all(map(NAME.fullmatch, (namespace, claim)))


class TensorBoards:
    """The reverse proxy.

    :param address: (namespace, claim) -> URL without a path.
    """

    def __init__(self, address: Callable[[str, str], str] = in_cluster) -> None:
        self._address = address
        self._http: aiohttp.ClientSession | None = None

    async def start(self, _: web.Application) -> None:
        self._http = aiohttp.ClientSession(
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS),
        )

    async def close(self, _: web.Application) -> None:
        if self._http:
            await self._http.close()

    async def ask(self, namespace: str, claim: str, rest: str, query: Mapping[str, str]) -> Any:
        """JSON that a TensorBoard answers; None where it answers nothing, something else, or more than is of use.

        :param rest: of the path, such as `data/runs`.
        """
        if not named(namespace, claim):
            return None
        assert self._http is not None
        url = URL(f"{self._address(namespace, claim)}/tensorboard/{namespace}/{claim}/{rest}").with_query(dict(query))
        plain, said = {"Accept-Encoding": "identity"}, bytearray()
        try:
            async with (
                asyncio.timeout(ASK_SECONDS),
                self._http.get(url, headers=plain, allow_redirects=False) as answer,
            ):
                async for chunk in answer.content.iter_any():
                    said += chunk
                    if len(said) > ASK_BYTES:
                        return None
                return json.loads(said) if answer.status == 200 else None
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError, RecursionError):
            return None

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Pass a request on, where its user has the right `get services/proxy` on that TensorBoard."""
        raw = request.rel_url.raw_path
        found = PATH.fullmatch(raw)
        if not found or TRICKS.search(raw) or not named(*found.group("namespace", "claim")):
            raise web.HTTPNotFound(text="There is no such TensorBoard.")
        namespace, claim = found.group("namespace", "claim")
        if refused := await _refused(request, namespace, claim):
            return refused
        if found["rest"] is None:
            raise web.HTTPFound(f"{raw}/")
        assert self._http is not None
        headers = CIMultiDict((name, request.headers[name]) for name in ASKED if name in request.headers)
        body = await request.read() if request.method == "POST" else None
        url = URL(f"{self._address(namespace, claim)}{raw}", encoded=True)
        if request.rel_url.raw_query_string:
            url = URL(f"{url}?{request.rel_url.raw_query_string}", encoded=True)
        try:
            async with self._http.request(
                request.method, url, headers=headers, data=body, allow_redirects=False, skip_auto_headers=["User-Agent"]
            ) as answer:
                return await _pass_back(request, answer, f"/tensorboard/{namespace}/{claim}/")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise web.HTTPBadGateway(text="This TensorBoard does not answer. It may still start.") from error


async def _refused(request: web.Request, namespace: str, claim: str) -> web.StreamResponse | None:
    """The answer to somebody who may not see a TensorBoard; None for who may."""
    console = request.app[CONSOLE]
    # Its page asks for more every half minute, without anybody who looks at it.
    session = session_of(console, request, use=request.headers.get("Sec-Fetch-Mode") == "navigate")
    if session is None:
        host = request.headers.get("Host", "")
        if not HOST.fullmatch(host):
            raise web.HTTPBadRequest(text="The name of this host cannot be.")
        raise web.HTTPSeeOther(f"{console.console_origin(host)}/login")
    if request.method == "POST" and not own_origin(request):
        raise web.HTTPForbidden(text="Pages of other origins may not ask TensorBoards.")
    right = of_tensorboard(namespace, claim)
    try:
        if not await console.rights.granted(session, [right]):
            raise web.HTTPForbidden(text=f"You may not see TensorBoards in the namespace {namespace}.")
    except LoginEnded:
        console.sessions.end(session)
        raise web.HTTPSeeOther(f"{console.console_origin(request.headers.get('Host', ''))}/login") from None
    except KubeError as error:
        raise web.HTTPServiceUnavailable(text=error.message) from error
    return None


async def _pass_back(request: web.Request, answer: aiohttp.ClientResponse, own: str) -> web.StreamResponse:
    headers = CIMultiDict((name, answer.headers[name]) for name in ANSWERED if name in answer.headers)
    if 300 <= answer.status < 400 and answer.status != 304:
        headers["Location"] = _own_place(answer, own)
        headers.popall("Content-Length", None)
        return web.Response(status=answer.status, headers=headers)
    response = web.StreamResponse(status=answer.status, headers=headers)
    await response.prepare(request)
    try:
        async for chunk in answer.content.iter_any():
            await response.write(chunk)
        await response.write_eof()
    except (aiohttp.ClientError, TimeoutError, OSError):
        # The browser has a part, which must not look like the whole.
        if request.transport:
            request.transport.abort()
    return response


def _own_place(answer: aiohttp.ClientResponse, own: str) -> str:
    """Where a redirect leads, as a path.

    :raises web.HTTPBadGateway: to somewhere else than below the TensorBoard's own path.
    """
    target = answer.url.join(URL(answer.headers.get("Location", "")))
    same = target.origin() == answer.url.origin()
    path = urlsplit(str(target)).path
    if not same or not path.startswith(own) or TRICKS.search(path):
        raise web.HTTPBadGateway(text="This TensorBoard sends its visitors elsewhere, and was not followed.")
    query = f"?{target.raw_query_string}" if target.raw_query_string else ""
    return path + query


async def set_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Put the headers on every answer, whatever the TensorBoard has said."""
    response.headers.update(HEADERS)
    if "Content-Encoding" not in response.headers:
        response.headers.setdefault("Cache-Control", "private")
