"""Reverse proxy for TensorBoards on a separate port, each in an opaque origin.

TensorBoards are isolated because their pages need `unsafe-eval` and show data of runs. A visit begins at
`/tensorboard/NAMESPACE/CLAIM/` with the console's login. The proxy redirects it to a path with a pass. The pages and
all their requests are below that path.

Parts: owners; passes; the proxy.

The owner check shows that the pods behind a TensorBoard belong to the project's Deployment. A Service selects pods by a
label, which any user who may run a Job could set on a pod. The cluster's controllers set the owners of a pod.

A pass is an unguessable part of a path, for one login and the TensorBoard of one claim. It gives access to this claim
only. Browsers treat the requests of an opaque origin as cross-site and send no cookie. So the path authorizes them
instead.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from ..core.untrusted import at, is_name, items, line
from ..core.waiter import CLOCK, Clock
from ..kube.api import KubeError
from ..trainings.names import TENSORBOARD_LABEL
from ..trainings.tensorboard import tensorboard_name
from .app import CONSOLE, Console
from .bodies import body as body_of
from .guard import HOST, session_of
from .opaque import PASSED, again, preflight, with_script
from .permissions import of_tensorboard
from .sessions import Session
from .user_api import Client, LoginEnded

GOOD_SECONDS = 20.0
MOST = 1000
"""Maximum number of cached claims."""


class Owners:
    """The owner check for pods of claims, made at most once in `GOOD_SECONDS` for each claim."""

    def __init__(self, client: Client, clock: Clock = CLOCK) -> None:
        self._client, self._clock = client, clock
        self._seen: dict[tuple[str, str], tuple[str, float]] = {}

    async def foreign(self, session: Session, namespace: str, claim: str) -> str:
        """Return the name of a pod that has the label of a claim but not its Deployment; empty if there is none.

        :raises LoginEnded, KubeError: the API server no longer accepts the token, or does not answer.
        """
        now = self._clock.monotonic()
        name, asked_at = self._seen.get((namespace, claim), ("", -GOOD_SECONDS))
        if now - asked_at < GOOD_SECONDS:
            return name
        query = {"labelSelector": f"{TENSORBOARD_LABEL}={claim}"}
        found = await self._client.get(session.token, f"/api/v1/namespaces/{namespace}/pods", query)
        name = ""
        for pod in items(at(found, "items")):
            if not await self._is_ours(session, namespace, claim, pod):
                name = str(at(pod, "metadata", "name"))
                break
        if len(self._seen) >= MOST:
            self._seen.clear()
        self._seen[namespace, claim] = name, now
        return name

    async def _is_ours(self, session: Session, namespace: str, claim: str, pod: Any) -> bool:
        """Return whether a ReplicaSet of the Deployment created a pod."""
        owner = _controller(pod, "ReplicaSet")
        if not is_name(at(owner, "name")):
            return False
        path = f"/apis/apps/v1/namespaces/{namespace}/replicasets/{at(owner, 'name')}"
        try:
            replicas = await self._client.get(session.token, path)
        except KubeError as error:
            if error.status == 404:
                return False
            raise
        made_by = _controller(replicas, "Deployment")
        same = at(replicas, "metadata", "uid") == at(owner, "uid")
        return same and at(made_by, "name") == tensorboard_name(claim)


def _controller(obj: Any, kind: str) -> Any:
    """Return the reference to the controller of an object if it is of this kind of `apps/v1`."""
    for owner in items(at(obj, "metadata", "ownerReferences")):
        if at(owner, "controller") is True and (at(owner, "apiVersion"), at(owner, "kind")) == ("apps/v1", kind):
            return owner
    return None


PASS_SECONDS = 1800.0
"""Idle time after which a pass ends, as for a login."""
OF_SESSION = 20
"""Maximum passes of one login; a further pass ends the one that was idle for longest."""


@dataclass(eq=False)
class Pass:
    """A pass for the TensorBoard of one claim.

    :param used: monotonic time of the last request.
    """

    key: str = field(repr=False)
    session: Session
    namespace: str
    claim: str
    used: float

    @property
    def path(self) -> str:
        """Base path of the TensorBoard, with a trailing slash."""
        return f"/pass/{self.key}/{self.namespace}/{self.claim}/"


class Passes:
    """All passes, kept in memory only."""

    def __init__(self) -> None:
        self._known: dict[str, Pass] = {}

    def __len__(self) -> int:
        return len(self._known)

    def give(self, session: Session, namespace: str, claim: str, now: float) -> Pass:
        """Return the pass of a login for a claim; create it if there is none. The caller has checked the right."""
        self._known = {key: each for key, each in self._known.items() if _valid(each, now)}
        mine = sorted((each for each in self._known.values() if each.session is session), key=lambda each: each.used)
        for each in mine:
            if (each.namespace, each.claim) == (namespace, claim):
                each.used = now
                return each
        for each in mine[: max(0, len(mine) - OF_SESSION + 1)]:
            del self._known[each.key]
        made = Pass(secrets.token_urlsafe(32), session, namespace, claim, now)
        self._known[made.key] = made
        return made

    def find(self, key: str, namespace: str, claim: str, now: float) -> Pass | None:
        """Return the pass of a path; None if it has ended or is for another claim."""
        found = self._known.get(key)
        if found is None or not _valid(found, now) or (found.namespace, found.claim) != (namespace, claim):
            return None
        found.used = now
        return found


def _valid(found: Pass, now: float) -> bool:
    return not found.session.ended and now - found.used < PASS_SECONDS


PORT, BODY_BYTES = 6006, 1024 * 1024
CONNECT_SECONDS, SILENCE_SECONDS = 5.0, 30.0
ASK_SECONDS, ASK_BYTES = 10.0, 2 * 1024 * 1024
"""Limits of one request by the console itself."""
NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
"""Names of namespaces and claims. Both become part of a host name, and a run's record may contain any text as claim."""
_PLACE = r"(?P<namespace>[^/]+)/(?P<claim>[^/]+)(?P<rest>/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)?"
ENTRY = re.compile(f"/tensorboard/{_PLACE}")
SHOWN = re.compile(f"/pass/(?P<key>[A-Za-z0-9_-]{{43}})/{_PLACE}")
TRICKS = re.compile(r"/\.{1,2}(?:/|$)|//|%(?:2e|2f|5c|00|25|0[0-9a-f]|1[0-9a-f]|7f)", re.IGNORECASE)
"""Paths that a proxy and its server may interpret differently: dot segments, double slashes, encoded separators."""
ASKED = ("Accept", "Accept-Encoding", "Accept-Language", "Content-Type", "If-Modified-Since", "If-None-Match", "Range")
"""Headers that are forwarded to a TensorBoard: no login, no cookie, nothing about the user."""
ANSWERED = (
    "Accept-Ranges", "Cache-Control", "Content-Encoding", "Content-Length", "Content-Range", "Content-Type", "ETag",
    "Expires", "Last-Modified", "Vary",
)  # fmt: skip
"""Headers that are forwarded to the browser: no cookies, no CORS rules."""


def in_cluster(namespace: str, claim: str) -> str:
    """Return the URL of the TensorBoard of a claim in the cluster's DNS."""
    return f"http://tensorboard-{claim}.{namespace}.svc:{PORT}"


def named(namespace: str, claim: str) -> bool:
    """Return whether these are valid names of a namespace and of a claim with a TensorBoard."""
    return all(map(NAME.fullmatch, (namespace, claim)))


class TensorBoards:
    """The reverse proxy.

    :param address: (namespace, claim) -> URL without a path.
    """

    def __init__(self, address: Callable[[str, str], str] = in_cluster) -> None:
        self._address = address
        self._passes = Passes()
        self._owners: Owners | None = None
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
        """Request JSON from a TensorBoard; return None if there is no answer, or it is no JSON or too large.

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
        """Begin a visit, or forward a request that has a pass."""
        raw = request.rel_url.raw_path
        entry, shown = ENTRY.fullmatch(raw), SHOWN.fullmatch(raw)
        found = entry or shown
        if not found or TRICKS.search(raw) or not named(*found.group("namespace", "claim")):
            raise web.HTTPNotFound(text="There is no such TensorBoard.")
        namespace, claim = found.group("namespace", "claim")
        rest = (found["rest"] or "/") + (f"?{query}" if (query := request.rel_url.raw_query_string) else "")
        if shown:
            return await self._show(request, shown["key"], namespace, claim, rest)
        if request.method != "GET" or not _is_visit(request):
            raise web.HTTPForbidden(text="Open a TensorBoard by its link; a page may not request it.")
        console = request.app[CONSOLE]
        session = session_of(console, request)
        if session is None:
            raise web.HTTPSeeOther(f"{_console(request)}/login")
        await self._check(request, session, namespace, claim)
        given = self._passes.give(session, namespace, claim, console.clock.monotonic())
        raise web.HTTPSeeOther(f"{given.path.rstrip('/')}{rest}")

    async def _show(self, request: web.Request, key: str, namespace: str, claim: str, rest: str) -> web.StreamResponse:
        console = request.app[CONSOLE]
        given = self._passes.find(key, namespace, claim, console.clock.monotonic())
        visit = _is_visit(request)
        # A shared link shows nothing: opening a page needs the login that the pass belongs to.
        # Requests of the page itself carry no cookie, and keep no login alive.
        shown = session_of(console, request) if visit else None
        if given and visit and shown is not given.session:
            given = None
        if given is None or not console.sessions.alive(given.session):
            if visit and shown is None:
                return again(f"/tensorboard/{namespace}/{claim}{rest}")
            if visit:
                raise web.HTTPSeeOther(f"/tensorboard/{namespace}/{claim}{rest}")
            raise web.HTTPForbidden(text="This view has ended. Reload the page.")
        request[PASSED] = True
        console.connections.logged_in(request.protocol, given.session)  # Its page sends no cookie.
        if request.method == "OPTIONS":
            return preflight(request)
        if request.method == "POST" and request.headers.get("Origin") != "null":
            raise web.HTTPForbidden(text="Only the page of a TensorBoard may send this request.")
        await self._check(request, given.session, namespace, claim)
        return await self._pass_on(request, given, rest)

    async def _check(self, request: web.Request, session: Session, namespace: str, claim: str) -> None:
        """
        :raises web.HTTPException: the user may not see this TensorBoard, or its pod is not of this project.
        """
        console = request.app[CONSOLE]
        try:
            if not await console.rights.granted(session, [of_tensorboard(namespace, claim)]):
                raise web.HTTPForbidden(text=f"You may not see TensorBoards in the namespace {namespace}.")
            if pod := await self.foreign(console, session, namespace, claim):
                raise web.HTTPForbidden(
                    text=f"The pod {line(pod, 100)} has the label of this TensorBoard but is not of its Deployment. "
                    "Delete the object that created it."
                )
        except LoginEnded:
            console.sessions.end(session)
            raise web.HTTPSeeOther(f"{_console(request)}/login") from None
        except KubeError as error:
            raise web.HTTPServiceUnavailable(text=error.message) from error

    async def foreign(self, console: Console, session: Session, namespace: str, claim: str) -> str:
        """Check as `Owners.foreign`."""
        self._owners = self._owners or Owners(console.client, console.clock)
        return await self._owners.foreign(session, namespace, claim)

    async def _pass_on(self, request: web.Request, given: Pass, rest: str) -> web.StreamResponse:
        assert self._http is not None
        headers = CIMultiDict((name, request.headers[name]) for name in ASKED if name in request.headers)
        if request.headers.get("Sec-Fetch-Dest", "document") in ("document", "iframe"):
            # A script is inserted into a page, so it must not be compressed.
            headers["Accept-Encoding"] = "identity"
        body = await body_of(request, BODY_BYTES) if request.method == "POST" else None
        own = f"/tensorboard/{given.namespace}/{given.claim}/"
        url = URL(f"{self._address(given.namespace, given.claim)}{own.rstrip('/')}{rest}", encoded=True)
        try:
            async with self._http.request(
                request.method, url, headers=headers, data=body, allow_redirects=False, skip_auto_headers=["User-Agent"]
            ) as answer:
                return await _pass_back(request, answer, own, given.path)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise web.HTTPBadGateway(text="This TensorBoard does not answer. It may still be starting.") from error


def _is_visit(request: web.Request) -> bool:
    """Return whether a user opens a page, by Sec-Fetch-Dest; a request without it cannot come from a TensorBoard."""
    return request.headers.get("Sec-Fetch-Dest", "document") == "document" and request.method == "GET"


def _console(request: web.Request) -> str:
    """
    :raises web.HTTPBadRequest: the Host header is invalid.
    """
    host = request.headers.get("Host", "")
    if not HOST.fullmatch(host):
        raise web.HTTPBadRequest(text="The Host header is invalid.")
    return request.app[CONSOLE].console_origin(host)


async def _pass_back(request: web.Request, answer: aiohttp.ClientResponse, own: str, shown: str) -> web.StreamResponse:
    """
    :param own: path of the TensorBoard on its server.
    :param shown: its path for the browser.
    """
    headers = CIMultiDict((name, answer.headers[name]) for name in ANSWERED if name in answer.headers)
    if 300 <= answer.status < 400 and answer.status != 304:
        headers["Location"] = shown + _own_place(answer, own).removeprefix(own)
        headers.popall("Content-Length", None)
        return web.Response(status=answer.status, headers=headers)
    chunks: AsyncIterator[bytes] = answer.content.iter_any()
    plain = headers.get("Content-Encoding", "identity") == "identity"
    if answer.content_type == "text/html" and plain and request.method == "GET":
        headers.popall("Content-Length", None)
        chunks = with_script(chunks)
    response = web.StreamResponse(status=answer.status, headers=headers)
    await response.prepare(request)
    try:
        async for chunk in chunks:
            await response.write(chunk)
        await response.write_eof()
    except (aiohttp.ClientError, TimeoutError, OSError):
        # The browser has an incomplete answer, which must not look complete.
        if request.transport:
            request.transport.abort()
    return response


def _own_place(answer: aiohttp.ClientResponse, own: str) -> str:
    """Return the target of a redirect as a path.

    :raises web.HTTPBadGateway: the target is not below the TensorBoard's own path.
    """
    target = answer.url.join(URL(answer.headers.get("Location", "")))
    same = target.origin() == answer.url.origin()
    path = urlsplit(str(target)).path
    if not same or not path.startswith(own) or TRICKS.search(path):
        raise web.HTTPBadGateway(text="This TensorBoard redirects to another place, which is not followed.")
    query = f"?{target.raw_query_string}" if target.raw_query_string else ""
    return path + query
