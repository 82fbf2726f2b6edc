"""Stop, continue, restart and delete a run: by the functions of the modules, with the token of who asks."""

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
from ..trainings import found
from ..trainings.again import Again
from ..trainings.stop import Stop
from .api import CALL_SECONDS, Client, LoginEnded
from .bodies import body, form
from .console import CONSOLE
from .guard import SESSION
from .pages import params_of
from .rights import of_action
from .sessions import Session

LOG = logging.getLogger("console")
T = TypeVar("T")
ANSWER_SECONDS = 8.0
"""How long a browser waits for an action; it goes on without it, and its end is seen on the page of the run."""
AT_ONCE, OF_USER = 40, 2
"""Actions under way: in all, and of one user. Those that wait for pods to end hold nothing but their place."""
THREADS = 16
"""For the calls of actions, which wait for no more than the API server's answer."""
END_SECONDS = 20.0
"""That a console which is told to end gives to what is under way; its pod has some more, for connections end first."""


def api_of(client: Client, token: str, loop: asyncio.AbstractEventLoop) -> Api:
    """The API server for functions that wait, called from another thread than the loop's."""

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
    """Actions that are under way, one for each run."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "action")
        self._under_way: dict[tuple[str, str], asyncio.Task[str]] = {}
        self._said: dict[asyncio.Task[str], list[str]] = {}
        self._of_user: Counter[str] = Counter()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """`{message}` as JSON; to a form without JavaScript, the page of the run, which says it."""
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
        :raises KubeError: status 403, the user may not, or 429, there are too many; nothing was changed.
        :raises TrainyardError: there is nothing to do, or it has failed.
        """
        user = request[SESSION].user
        if self._of_user[user] >= OF_USER:
            raise KubeError(f"{OF_USER} actions of yours are under way. Wait until one has ended.", status=429)
        if self._of_user.total() >= AT_ONCE:
            raise KubeError("Too many actions are under way at this moment.", status=429)
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
        said: list[str] = self._said.get(work) or ["under way"]
        return f"{params['action']}: {said[-1]}"

    def _ended(self, user: str) -> None:
        self._of_user[user] -= 1
        if not self._of_user[user]:
            del self._of_user[user]

    async def _begin(self, request: web.Request, params: dict[str, str]) -> asyncio.Task[str]:
        """Check that an action may be done, and begin it.

        :raises KubeError, TrainyardError: as `_do`.
        """
        console, session = request.app[CONSOLE], request[SESSION]
        namespace, run, action = params["namespace"], params["run"], params["action"]
        loop = asyncio.get_running_loop()
        api = api_of(console.client, session.token, loop)
        there = await self._call(found.at, api, namespace, run)
        wanted = of_action(action, namespace, run, str((there.live or {}).get("kind", "JobSet")))
        if missing := set(wanted) - await console.rights.granted(session, wanted):
            what = ", ".join(sorted(f"{right.verb} {right.resource}" for right in missing))
            raise KubeError(f"You may not {action} runs in the namespace {namespace}: {what}.", status=403)
        if action == "delete" and await _typed(request) != run:
            raise TrainyardError(f"Nothing was deleted: type the name of the run, {run}, to confirm.")
        if (namespace, run) in self._under_way:
            raise TrainyardError(f"Something else is being done with the run {run}.", remedy="Wait until it has ended.")
        LOG.info("%s of %s/%s by %s", action, namespace, run, session.user)
        said: list[str] = []
        work = asyncio.create_task(self._carry_out(api, there, action, session.user, said.append))
        self._under_way[namespace, run], self._said[work] = work, said
        work.add_done_callback(lambda _: (self._under_way.pop((namespace, run)), self._said.pop(work)))
        return work

    async def _carry_out(self, api: Api, there: found.Found, action: str, user: str, say: Callable[[str], None]) -> str:
        """Do it, each call in a thread, and wait in between without one; what was done, in words."""
        plan = await self._call(_plan, api, there, action, user, say)
        for step in plan.steps:
            if isinstance(step.act, Waits):
                work = step.act.work()
                while (seconds := await self._call(next, work, None)) is not None:
                    await asyncio.sleep(seconds)
            else:
                await self._call(step.act)
            plan.done.append(step.what)
        return "; ".join(plan.done) or f"The run {there.name} has ended before."

    async def _call(self, what: Callable[..., T], *given: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, what, *given)

    async def close(self, _: web.Application) -> None:
        """Give what is under way some time; what it does stands step by step, and can be asked for again."""
        if self._under_way:
            await asyncio.wait(self._under_way.values(), timeout=END_SECONDS)
        for work in list(self._under_way.values()):
            work.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)


def _tell_later(session: Session, what: str, work: asyncio.Future[str]) -> None:
    """Say on the user's next page how an action ended that took long."""
    if work.cancelled():
        return
    error = work.exception()
    session.flash = f"{what} has failed: {error}" if error else f"{what}: {work.result()}"
    if error:
        LOG.warning("%s", session.flash)


def _plan(api: Api, there: found.Found, action: str, user: str, say: Callable[[str], None]) -> Plan:
    if action in ("continue", "restart"):
        return Again(api, there, say).plan(fresh=action == "restart")
    return Stop(api, there, "", say, by=user).plan(forget=action == "delete")


async def _typed(request: web.Request) -> str:
    """What the user has typed to confirm, of a form or of JSON."""
    if request.content_type != "application/json":
        return (await form(request)).get("name", "")
    try:
        given = json.loads(await body(request))
    except (ValueError, RecursionError):
        return ""
    return str(given.get("name", "")) if isinstance(given, dict) else ""
