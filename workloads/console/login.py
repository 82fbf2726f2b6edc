"""Logging in with a token, and out."""

from __future__ import annotations

import asyncio
import logging
import math
import re

from aiohttp import web
from ansible.module_utils.trainyard.core.untrusted import clean
from ansible.module_utils.trainyard.kube.api import KubeError

from .api import LoginEnded
from .console import CONSOLE, Console
from .guard import COOKIE, SESSION, own_origin, safe_next, session_of
from .rights import WHO
from .sessions import Session

LOG = logging.getLogger("console")
TOKEN = re.compile(r"[\x21-\x7e]{1,16384}")
"""What can stand in a header."""
AT_ONCE = 20
"""Logins that wait or are looked at: so many can fail before the first has slowed the others. Colleagues may have one
address, that of a node, and log in at the same time."""
WRONG = "The API server does not accept this token. It may be over, or was revoked."


class Logins:
    """Handlers of /login and /logout."""

    def __init__(self) -> None:
        self._under_way = 0

    async def form(self, request: web.Request) -> web.Response:
        if session_of(request.app[CONSOLE], request):
            raise web.HTTPSeeOther("/")
        after = safe_next(request.query.get("next", "/"))
        return request.app[CONSOLE].render("login", error="", next=after)

    async def log_in(self, request: web.Request) -> web.StreamResponse:
        """A new session for who has a token; failures are slowed."""
        console, address = request.app[CONSOLE], request.remote or ""
        if not own_origin(request):
            raise web.HTTPForbidden(text="A login has to come from the console's own page.")
        given = await request.post()
        token, after = str(given.get("token", "")).strip(), safe_next(str(given.get("next", "/")))
        wait = console.throttle.refused_for(address)
        if wait or self._under_way >= AT_ONCE:
            seconds = math.ceil(wait) or 2
            page = console.render("login", status=429, error=f"Wait {seconds} s, then try again.", next=after)
            page.headers["Retry-After"] = str(seconds)
            return page
        self._under_way += 1
        try:
            await asyncio.sleep(console.throttle.pause())
            user = await _user(console, token) if TOKEN.fullmatch(token) else ""
        finally:
            self._under_way -= 1
        if not user:
            console.throttle.failed(address)
            LOG.warning("A login from %s has failed.", address)
            return console.render("login", status=401, error=WRONG, next=after)
        console.throttle.succeeded(address)
        if before := session_of(console, request):
            console.sessions.end(before)
        session = console.sessions.begin(token, user)
        if session is None:
            raise web.HTTPServiceUnavailable(text="Too many people are logged in at this moment.")
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


async def _user(console: Console, token: str) -> str:
    """Who has a token, by the API server's word; empty where it is not accepted.

    :raises KubeError: it does not answer; who logs in is not to blame.
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
