"""Stop, continue, restart and delete a run, with the functions of the modules and the token of the user."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from aiohttp import web

from ..core.errors import TrainyardError
from ..core.plan import Plan
from ..core.waiter import Waits
from ..kube.api import Api, KubeError
from ..trainings import run_index
from ..trainings.again import Again
from ..trainings.stop import Stop
from .app import CONSOLE
from .bodies import body, form
from .guard import SESSION
from .pages import params_of
from .permissions import of_action
from .sessions import Session
from .user_api import CALL_SECONDS, Client, LoginEnded

LOG = logging.getLogger("console")
T = TypeVar("T")
ANSWER_SECONDS = 8.0
"""Seconds that a browser waits for an action. A longer action continues, and the page of the run shows its result."""
AT_ONCE, OF_USER = 40, 2
"""Maximum running actions: in total, and of one user. An action that waits for pods to end holds no thread."""
THREADS = 16
"""Threads for the calls of actions, which wait only for answers of the API server."""
END_SECONDS = 20.0
"""Seconds that running actions get when the console stops. Its pod's grace period is longer, because connections end
first."""


def api_of(client: Client, token: str, loop: asyncio.AbstractEventLoop) -> Api:
    """Return an API for blocking functions, to be called from another thread than that of the loop."""

    def transport(method: str, path: str, query: list[tuple[str, str]], body: Any, content: str) -> tuple[int, str]:
        call = client.call(token, method, path, query=query, body=body, content_type=content, accept="*/*")
        try:
            return asyncio.run_coroutine_threadsafe(call, loop).result(2 * CALL_SECONDS)
        except LoginEnded:
            return 401, '{"message": "your login has ended"}'
        except TimeoutError:
            return 0, "it took too long"

    return Api(transport)


class Actions:
    """The running actions, at most one per run."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "action")
        self._under_way: dict[tuple[str, str], asyncio.Task[str]] = {}
        self._said: dict[asyncio.Task[str], list[str]] = {}
        self._of_user: Counter[str] = Counter()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Carry out an action. Answer `{message}` as JSON; a form without JavaScript gets the page with the message."""
        params = params_of(request)
        form = request.content_type == "application/x-www-form-urlencoded" and "text/html" in request.headers.get(
            "Accept", ""
        )
        if not form:
            return web.json_response({"message": await self._do(request, params)})
        try:
            request[SESSION].flash = await self._do(request, params)
        except TrainyardError as error:
            if isinstance(error, KubeError) and error.status == 403:
                raise
            request[SESSION].flash = str(error)
        gone = params["action"] == "delete"
        raise web.HTTPSeeOther("/" if gone else f"/runs/{params['namespace']}/{params['run']}")

    async def _do(self, request: web.Request, params: dict[str, str]) -> str:
        """
        :raises KubeError: status 403, the user has no right, or 429, too many actions; nothing was changed.
        :raises TrainyardError: there is nothing to do, or the action has failed.
        """
        user = request[SESSION].user
        if self._of_user[user] >= OF_USER:
            raise KubeError(f"{OF_USER} of your actions are running. Wait until one has ended.", status=429)
        if self._of_user.total() >= AT_ONCE:
            raise KubeError("Too many actions are running.", status=429)
        self._of_user[user] += 1
        work = None
        try:
            work = await self._begin(request, params)
        finally:
            if work is None:
                self._ended(user)
        work.add_done_callback(lambda _: self._ended(user))
        session, what = request[SESSION], f"{params['action']} of {params['run']}"
        try:
            done, _ = await asyncio.wait([work], timeout=ANSWER_SECONDS)
        except asyncio.CancelledError:
            work.add_done_callback(partial(_tell_later, session, what))
            raise
        if done:
            return work.result()
        work.add_done_callback(partial(_tell_later, session, what))
        said: list[str] = self._said.get(work) or ["running"]
        return f"{params['action']}: {said[-1]}"

    def _ended(self, user: str) -> None:
        self._of_user[user] -= 1
        if not self._of_user[user]:
            del self._of_user[user]

    async def _begin(self, request: web.Request, params: dict[str, str]) -> asyncio.Task[str]:
        """Check that an action is allowed, and start it.

        :raises KubeError, TrainyardError: as `_do`.
        """
        console, session = request.app[CONSOLE], request[SESSION]
        namespace, run, action = params["namespace"], params["run"], params["action"]
        loop = asyncio.get_running_loop()
        api = api_of(console.client, session.token, loop)
        there = await self._call(run_index.at, api, namespace, run)
        wanted = of_action(action, namespace, run, str((there.live or {}).get("kind", "JobSet")))
        if missing := set(wanted) - await console.rights.granted(session, wanted):
            what = ", ".join(sorted(f"{right.verb} {right.resource}" for right in missing))
            raise KubeError(f"You may not {action} runs in the namespace {namespace}: {what}.", status=403)
        if action == "delete" and await _typed(request) != run:
            raise TrainyardError(f"Nothing was deleted: type the name of the run, {run}, to confirm.")
        if (namespace, run) in self._under_way:
            raise TrainyardError(f"Another action on the run {run} is running.", remedy="Wait until it has ended.")
        LOG.info("%s of %s/%s by %s", action, namespace, run, session.user)
        said: list[str] = []
        work = asyncio.create_task(self._carry_out(api, there, action, session.user, said.append))
        self._under_way[namespace, run], self._said[work] = work, said
        work.add_done_callback(lambda _: (self._under_way.pop((namespace, run)), self._said.pop(work)))
        return work

    async def _carry_out(
        self, api: Api, there: run_index.Found, action: str, user: str, say: Callable[[str], None]
    ) -> str:
        """Carry out an action, with a thread per call and none while waiting; return a text of the completed steps."""
        plan = await self._call(_plan, api, there, action, user, say)
        for step in plan.steps:
            if isinstance(step.act, Waits):
                work = step.act.work()
                while (seconds := await self._call(next, work, None)) is not None:
                    await asyncio.sleep(seconds)
            else:
                await self._call(step.act)
            plan.done.append(step.what)
        return "; ".join(plan.done) or f"The run {there.name} had already ended."

    async def _call(self, what: Callable[..., T], *given: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, what, *given)

    async def close(self, _: web.Application) -> None:
        """Give running actions some time, then cancel them: completed steps stay, and the action can be repeated."""
        if self._under_way:
            await asyncio.wait(self._under_way.values(), timeout=END_SECONDS)
        for work in list(self._under_way.values()):
            work.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)


def _tell_later(session: Session, what: str, work: asyncio.Future[str]) -> None:
    """Show the result of a long action on the user's next page."""
    if work.cancelled():
        return
    error = work.exception()
    session.flash = f"{what} has failed: {error}" if error else f"{what}: {work.result()}"
    if error:
        LOG.warning("%s", session.flash)


def _plan(api: Api, there: run_index.Found, action: str, user: str, say: Callable[[str], None]) -> Plan:
    if action in ("continue", "restart"):
        return Again(api, there, say).plan(fresh=action == "restart")
    return Stop(api, there, "", say, by=user).plan(forget=action == "delete")


async def _typed(request: web.Request) -> str:
    """Return the confirmation that the user has typed, from a form or from JSON."""
    if request.content_type != "application/json":
        return (await form(request)).get("name", "")
    try:
        given = json.loads(await body(request))
    except (ValueError, RecursionError):
        return ""
    return str(given.get("name", "")) if isinstance(given, dict) else ""
