"""Log in with a token, and log out."""

from __future__ import annotations

import asyncio
import logging
import re

from aiohttp import web

from ..core.untrusted import clean
from ..kube.api import KubeError
from .app import CONSOLE, Console
from .bodies import form
from .connections import address_of
from .guard import COOKIE, SESSION, own_origin, safe_next, session_of
from .permissions import WHO
from .sessions import Session
from .user_api import LoginEnded

LOG = logging.getLogger("console")
TOKEN = re.compile(r"[\x21-\x7e]{1,16384}")
"""Characters that a header may contain."""
LOGIN_BYTES = 20 * 1024
"""Maximum size of the form: the longest token, and the path to go to afterwards."""
WAIT_SECONDS = 30.0
"""Timeout for a turn. Wrong tokens cannot exhaust it; an API server that does not answer can."""
WRONG = "The API server does not accept this token. It may have expired or was revoked."


class Logins:
    """Handlers of /login and /logout."""

    async def form(self, request: web.Request) -> web.Response:
        if session_of(request.app[CONSOLE], request):
            raise web.HTTPSeeOther("/")
        after = safe_next(request.query.get("next", "/"))
        return request.app[CONSOLE].render("login", error="", next=after)

    async def log_in(self, request: web.Request) -> web.StreamResponse:
        """Create a session for a valid token; delay the answer to a wrong one."""
        console, address = request.app[CONSOLE], address_of(request.remote or "")
        if not own_origin(request):
            raise web.HTTPForbidden(text="A login must come from the console's own page.")
        given = await form(request, LOGIN_BYTES)
        token, after = given.get("token", "").strip(), safe_next(given.get("next", "/"))
        user = await admitted(console, address, token, request.protocol)
        if not user:
            LOG.warning("A login from %s has failed.", address)
            return console.render("login", status=401, error=WRONG, next=after)
        if before := session_of(console, request):
            console.sessions.end(before)
        session = console.sessions.begin(token, user)
        if session is None:
            raise web.HTTPServiceUnavailable(text="Too many users are logged in.")
        console.connections.logged_in(request.protocol, session)
        LOG.info("%s has logged in from %s.", clean(user), address)
        session.at_end.append(lambda: console.kept.forget(session.key))
        answer = web.HTTPSeeOther(after)
        answer.set_cookie(COOKIE, session.key, path="/", secure=True, httponly=True, samesite="Strict")
        raise answer

    async def log_out(self, request: web.Request) -> web.StreamResponse:
        session: Session = request[SESSION]
        request.app[CONSOLE].sessions.end(session)
        answer = web.HTTPSeeOther("/login")
        answer.del_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="Strict")
        raise answer


async def admitted(console: Console, address: str, token: str, protocol: asyncio.Protocol) -> str:
    """Return the user of a token; empty, after a delay, if it is not accepted.

    Wrong tokens never cause the refusal of a valid one.

    :param address: result of `address_of`.
    :raises KubeError: the API server does not answer, or is overloaded.
    """
    user = ""
    if TOKEN.fullmatch(token):
        try:
            with console.connections.logging_in(protocol):
                async with asyncio.timeout(WAIT_SECONDS), console.throttle.turn(address) as right:
                    if user := await _user(console, token):
                        right()
        except TimeoutError:
            raise KubeError("Too many users are logging in. Try again.", status=503) from None
    if user:
        console.throttle.succeeded(address)
    else:
        await console.throttle.failed(address)
    return user


async def _user(console: Console, token: str) -> str:
    """Return the user of a token as the API server reports it; empty if the token is not accepted.

    :raises KubeError: the API server does not answer, which is no fault of the user.
    """
    question = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        answer = await console.client.post(token, WHO, question)
        user = str(answer["status"]["userInfo"]["username"])
    except LoginEnded:
        return ""
    except KubeError as error:
        if error.status in (400, 403):
            return ""
        raise
    return "" if user == "system:anonymous" else user
