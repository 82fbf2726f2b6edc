"""Middleware and checks for each request of the first port: headers, login, and origin."""

from __future__ import annotations

import hmac
import logging
import re
from collections.abc import Awaitable, Callable

from aiohttp import web

from ..core.errors import TrainyardError
from ..kube.api import KubeError
from .app import CONSOLE, Console
from .bodies import form
from .sessions import Session
from .user_api import LoginEnded

LOG = logging.getLogger("console")
COOKIE = "__Host-console"
CSRF_HEADER = "X-Console-Session"
CSRF_FIELD = "session"
BY_ITSELF = "X-Console-Refresh"
"""Header of automatic requests of a page, so that an open tab does not keep a login alive."""
STREAMS = re.compile(r"/api/v1/runs/[^/]+/[^/]+/(?:logs/[^/]+/)?events")
"""Paths of event streams, which a page reopens automatically."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With `no-referrer`, browsers would send forms of the console with the origin `null`.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Server": "console",
}
OPEN = ("/login", "/healthz", "/static/", "/favicon.ico")
"""Prefixes of paths that need no login."""
TITLES = {
    403: "You may not see this",
    404: "There is no such page",
    410: "The rest of this list has expired",
    503: "The cluster does not answer",
}
TOO_OLD = "The API server keeps the rest of a list for a few minutes only. Start with the first page."
HOST = re.compile(r"(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")
SESSION = web.RequestKey("session", Session)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def set_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Set the headers on each answer, including those that no handler has made."""
    response.headers.update(HEADERS)
    # Browsers must revalidate static files, because a newer image contains newer scripts.
    response.headers.setdefault("Cache-Control", "no-cache" if request.path.startswith("/static/") else "no-store")


def is_api(request: web.Request) -> bool:
    return request.path.startswith("/api/")


def own_origin(request: web.Request) -> bool:
    """Return whether the Origin header names this origin; a request without the header does not qualify."""
    host = request.headers.get("Host", "")
    return bool(HOST.fullmatch(host)) and request.headers.get("Origin") == f"https://{host}"


def session_of(console: Console, request: web.Request, *, use: bool = True) -> Session | None:
    session = console.sessions.find(request.cookies.get(COOKIE, ""), use=use)
    if session:
        console.connections.logged_in(request.protocol, session)
    return session


async def refuse_forged(request: web.Request, session: Session) -> None:
    """
    :raises web.HTTPForbidden: the request does not come from a page of this session.
    """
    said = request.headers.get(CSRF_HEADER, "")
    said = said or (await form(request)).get(CSRF_FIELD, "")
    if not own_origin(request) or not hmac.compare_digest(said.encode("utf-8", "replace"), session.csrf.encode()):
        raise web.HTTPForbidden(text="This did not come from a page of your login. Reload the page.")


@web.middleware
async def errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Convert each error to a page or to JSON, with its status."""
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
        return failure(request, 500, "The console has failed; its log has the details.")


@web.middleware
async def login(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Require a login, and refuse requests of pages of other origins."""
    if request.path.startswith(OPEN):
        return await handler(request)
    # Cookies ignore ports, so a TensorBoard page on the other port would also send the cookie.
    if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin") and not _is_visit(request):
        raise web.HTTPForbidden(text="Pages of other origins may not send requests to the console.")
    unasked = STREAMS.fullmatch(request.path) or BY_ITSELF in request.headers
    session = session_of(request.app[CONSOLE], request, use=not unasked)
    if session is None:
        return unknown(request, "")
    request[SESSION] = session
    if request.method not in ("GET", "HEAD"):
        await refuse_forged(request, session)
    return await handler(request)


def _is_visit(request: web.Request) -> bool:
    """Return whether the user follows a link to a page."""
    return request.method == "GET" and request.headers.get("Sec-Fetch-Mode") == "navigate" and not is_api(request)


def ended(request: web.Request) -> web.Response:
    """End a login whose token the API server no longer accepts, and answer with a message."""
    console = request.app[CONSOLE]
    if session := session_of(console, request, use=False):
        console.sessions.end(session)
    return unknown(request, "Your login has ended. Log in again.")


def unknown(request: web.Request, message: str) -> web.Response:
    """Return the answer to a user who is not logged in."""
    if is_api(request):
        return web.json_response({"error": message or "Log in."}, status=401)
    after = request.path_qs if request.method == "GET" else "/"
    found = request.app[CONSOLE].render("login", status=401, error=message, next=safe_next(after))
    # A link from another site arrives without the cookie; it must not delete a valid one.
    if COOKIE in request.cookies:
        found.del_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="Strict")
    return found


def safe_next(path: str) -> str:
    """Return a path of this origin to go to after a login; `/` for any other value."""
    return path if re.fullmatch(r"/(?:[A-Za-z0-9._~%&=?+:@-][A-Za-z0-9._~%&=?+:@/-]{0,500})?", path) else "/"


def failure(request: web.Request, status: int, message: str, remedy: str = "") -> web.Response:
    """Return an error as a page, or as JSON below /api."""
    if is_api(request):
        return web.json_response({"error": message, **({"remedy": remedy} if remedy else {})}, status=status)
    session = request.get(SESSION)
    return request.app[CONSOLE].render(
        "error", status=status, session=session, title=TITLES.get(status, ""), message=message, remedy=remedy
    )
