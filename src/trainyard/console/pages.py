"""Pages and the same as JSON: read with the user's token, built by pure functions, rendered by templates."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from aiohttp import web

from ..core.untrusted import clean, plain
from ..kube.api import KubeError
from ..kube.reads import Unread
from .console import CONSOLE, Console
from .guard import SESSION
from .lines import VIEW_DEPTH
from .may import known
from .reading import drive, of_the_server
from .rights import ACTIONS, of_action
from .sessions import Session
from .views.page import Page

NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._:-]{0,251}[A-Za-z0-9])?")
"""Of everything in a path: what a name in Kubernetes can be, and a little more for names of roles."""
VALUE = re.compile(r"[^\x00-\x1f\x7f]*")
LONGEST = 200
LONG = {"continue": 2_000}
"""Characters of a parameter; where a list goes on is said with a name of an object, which may be long."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def params_of(request: web.Request, known: Sequence[str] = ()) -> dict[str, str]:
    """Parameters of the path, and those of the query that are known; others are not looked at.

    :raises web.HTTPNotFound: one in the path cannot be a name.
    :raises web.HTTPBadRequest: one of the query is of no use anywhere.
    """
    if not all(NAME.fullmatch(value) for value in request.match_info.values()):
        raise web.HTTPNotFound(text="There is no such page.")
    asked = {name: request.query[name] for name in known if name in request.query}
    if not all(len(it) <= LONG.get(name, LONGEST) and VALUE.fullmatch(it) for name, it in asked.items()):
        raise web.HTTPBadRequest(text="These parameters cannot be.")
    return {**asked, **request.match_info}


def key_of(page: Page, params: Mapping[str, str]) -> str:
    """A page and what it is asked for, as its last view is found again."""
    return json.dumps([page.name, sorted((name, value) for name, value in params.items() if value)])


async def read(console: Console, session: Session, page: Page, params: Mapping[str, str]) -> dict[str, Any]:
    """The view of a page.

    :raises KubeError: status 403 where nothing of it may be read, 0 or 5xx where the API server does not answer.
    """
    unread: list[Unread] = []
    asked: list[str] = []
    ask = console.lists.asker(session, unread)

    async def counted(wanted: Any) -> Any:
        asked.append(wanted.path)
        return await ask(wanted)

    async with console.turns.taken(session.user):
        answers = await drive(page.read(params), counted)
        raise_what_is_refused(asked, unread, params.get("namespace", ""))
        view = page.build(answers, params, console.now())
    if page.name == "about":
        view |= await known(console, session)
    try:
        json.dumps(view, allow_nan=False)
    except ValueError:  # A run has said a number that is not finite, which no browser reads.
        view = plain(view, VIEW_DEPTH)
    return view


def raise_what_is_refused(asked: Sequence[str], unread: Sequence[Unread], namespace: str) -> None:
    """
    :raises KubeError: the API server is away, so that a view would show less than there is, or all was refused.
    """
    away = [each for each in of_the_server(unread) if KubeError("", status=each.status).transient]
    if away:
        raise KubeError(away[0].reason, status=0)
    here = [path for path in asked if not namespace or f"/namespaces/{namespace}/" in path]
    refused = {each.path: each for each in unread if each.status == 403}
    if here and all(path in refused for path in here):
        raise KubeError(refused[here[0]].reason, status=403)


def html(page: Page) -> Handler:
    """The handler of a page."""

    async def handle(request: web.Request) -> web.StreamResponse:
        console, session, params = request.app[CONSOLE], request[SESSION], params_of(request, page.query)
        notice, kept, key = "", None, key_of(page, params)
        try:
            view = await read(console, session, page, params)
            console.kept.keep(session.key, key, json.dumps(view))
        except KubeError as error:
            kept = console.kept.find(session.key, key)
            if not error.no_answer or kept is None:
                raise
            view = dict(kept.view)
            age = round(console.clock.time() - kept.at)
            notice = f"The API server does not answer. This is what it said {age} s ago."
        if session.flash:
            notice, session.flash = f"{session.flash} {notice}".strip(), ""
        # More stands round a service than a run has, and a playbook ends all of it.
        actions = [] if view.get("service") else await actions_here(console, session, params)
        return console.render(
            page.name,
            session=session,
            notice=notice,
            kept=kept is not None,
            actions=actions,
            view=view,
            tensorboard=console.tensorboard_origin(request.headers.get("Host", "")),
        )

    return handle


def api(page: Page) -> Handler:
    """The handler of the same as JSON."""

    async def handle(request: web.Request) -> web.StreamResponse:
        view = await read(request.app[CONSOLE], request[SESSION], page, params_of(request, page.query))
        return web.json_response(view)

    return handle


async def actions_here(console: Console, session: Session, params: Mapping[str, str]) -> list[str]:
    """Which actions the user may do with the run that a page is about; what cannot be found out is not offered."""
    if not {"namespace", "run"} <= params.keys():
        return []
    wanted = {action: of_action(action, params["namespace"], params["run"]) for action in ACTIONS}
    try:
        granted = await console.rights.granted(session, [right for rights in wanted.values() for right in rights])
    except KubeError:
        return []
    return [action for action, rights in wanted.items() if granted.issuperset(rights)]


async def who(request: web.Request) -> web.Response:
    """Who is logged in, at /api/v1/session."""
    session = request[SESSION]
    return web.json_response({"user": clean(session.user), "site": request.app[CONSOLE].config.site})
