"""What holds for every request of the first port: headers, the login, and the page's own origin."""

from __future__ import annotations

import hmac
import logging
import re
from collections.abc import Awaitable, Callable

from aiohttp import web

from ..core.errors import TrainyardError
from ..kube.api import KubeError
from .api import LoginEnded
from .bodies import form
from .console import CONSOLE, Console
from .sessions import Session

LOG = logging.getLogger("console")
COOKIE = "__Host-console"
CSRF_HEADER = "X-Console-Session"
CSRF_FIELD = "session"
BY_ITSELF = "X-Console-Refresh"
"""Header of what a page asks for without its reader: a tab that is left open must not keep a login alive."""
STREAMS = re.compile(r"/api/v1/runs/[^/]+/[^/]+/(?:logs/[^/]+/)?events")
"""Paths of event streams, which a page opens again and again by itself."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not `no-referrer`, with which browsers send a form of ours with the origin `null`.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Server": "console",
}
OPEN = ("/login", "/healthz", "/static/", "/favicon.ico")
"""Beginnings of paths that need no login."""
TITLES = {
    403: "You may not see this",
    404: "There is no such page",
    410: "The rest of this list is gone",
    503: "The cluster does not answer",
}
TOO_OLD = "The API server keeps the rest of a list for some minutes only. Begin with the first page."
HOST = re.compile(r"(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")
SESSION = web.RequestKey("session", Session)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def set_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Put the headers on every answer, also those that no handler has made."""
    response.headers.update(HEADERS)
    # What every browser may keep, it asks for by its time all the same: an image that is newer has newer scripts.
    response.headers.setdefault("Cache-Control", "no-cache" if request.path.startswith("/static/") else "no-store")


def is_api(request: web.Request) -> bool:
    return request.path.startswith("/api/")


def own_origin(request: web.Request) -> bool:
    """Whether a page of this very origin has sent a request, as browsers say it; what says nothing is no such page."""
    host = request.headers.get("Host", "")
    return bool(HOST.fullmatch(host)) and request.headers.get("Origin") == f"https://{host}"


def session_of(console: Console, request: web.Request, *, use: bool = True) -> Session | None:
    session = console.sessions.find(request.cookies.get(COOKIE, ""), use=use)
    if session:
        console.connections.logged_in(request.protocol, session)
    return session


async def refuse_forged(request: web.Request, session: Session) -> None:
    """
    :raises web.HTTPForbidden: a request that changes something and is not from a page of this session.
    """
    said = request.headers.get(CSRF_HEADER, "")
    said = said or (await form(request)).get(CSRF_FIELD, "")
    if not own_origin(request) or not hmac.compare_digest(said.encode("utf-8", "replace"), session.csrf.encode()):
        raise web.HTTPForbidden(text="This did not come from a page of your login. Load the page anew.")


@web.middleware
async def errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Every error by its meaning, as a page or as JSON."""
    try:
        return await handler(request)
    except LoginEnded:
        return ended(request)
    except KubeError as error:
        if error.status == 401:
            return ended(request)
        if error.status == 410:
            return failure(request, 410, TOO_OLD)
        status = error.status if error.status in (400, 403, 404, 409, 429) else 503
        return failure(request, status, error.message, error.remedy)
    except TrainyardError as error:
        return failure(request, 409, error.message, error.remedy)
    except web.HTTPRedirection:
        raise
    except web.HTTPException as error:
        return failure(request, error.status, error.text or error.reason)
    except (ConnectionResetError, TimeoutError):
        raise
    except Exception:
        LOG.exception("A request for %s has failed.", request.path.encode("ascii", "replace").decode()[:200])
        return failure(request, 500, "The console has a fault here; its log has the details.")


@web.middleware
async def login(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Nothing without a login, and nothing for pages of other origins."""
    if request.path.startswith(OPEN):
        return await handler(request)
    # A page of TensorBoard has another port, and with it the cookie.
    if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin") and not _is_visit(request):
        raise web.HTTPForbidden(text="Pages of other origins may not ask this one.")
    unasked = STREAMS.fullmatch(request.path) or BY_ITSELF in request.headers
    session = session_of(request.app[CONSOLE], request, use=not unasked)
    if session is None:
        return unknown(request, "")
    request[SESSION] = session
    if request.method not in ("GET", "HEAD"):
        await refuse_forged(request, session)
    return await handler(request)


def _is_visit(request: web.Request) -> bool:
    """Whether somebody follows a link to a page."""
    return request.method == "GET" and request.headers.get("Sec-Fetch-Mode") == "navigate" and not is_api(request)


def ended(request: web.Request) -> web.Response:
    """End a login that the API server does not accept any more, and say so."""
    console = request.app[CONSOLE]
    if session := session_of(console, request, use=False):
        console.sessions.end(session)
    return unknown(request, "Your login has ended. Log in anew.")


def unknown(request: web.Request, message: str) -> web.Response:
    """The answer to somebody who is not logged in."""
    if is_api(request):
        return web.json_response({"error": message or "Log in."}, status=401)
    after = request.path_qs if request.method == "GET" else "/"
    found = request.app[CONSOLE].render("login", status=401, error=message, next=safe_next(after))
    # Who follows a link from another site comes without the cookie, and must not lose it for that.
    if COOKIE in request.cookies:
        found.del_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="Strict")
    return found


def safe_next(path: str) -> str:
    """A path of this origin to go to after a login; `/` for anything else."""
    return path if re.fullmatch(r"/(?:[A-Za-z0-9._~%&=?+:@-][A-Za-z0-9._~%&=?+:@/-]{0,500})?", path) else "/"


def failure(request: web.Request, status: int, message: str, remedy: str = "") -> web.Response:
    """An error as a page, or as JSON below /api."""
    if is_api(request):
        return web.json_response({"error": message, **({"remedy": remedy} if remedy else {})}, status=status)
    session = request.get(SESSION)
    return request.app[CONSOLE].render(
        "error", status=status, session=session, title=TITLES.get(status, ""), message=message, remedy=remedy
    )
