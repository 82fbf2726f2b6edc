"""Pages, also as JSON: read with the user's token, built by pure functions, rendered by templates.

Parts: the data of the page About that only the server has; all pages. These data are the logged-in user, that user's
rights, and versions.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from aiohttp import web

from ..core.untrusted import clean, plain
from ..kube.api import KubeError
from ..kube.reads import Unread, listing
from .app import CONSOLE, Console
from .guard import SESSION
from .permissions import ACTIONS, of_action, of_tensorboard, of_watching
from .sessions import Session
from .shares import VIEW_DEPTH
from .user_api import drive, of_the_server
from .views.page import Page

SPACES = "trainyard.dev/trainings=true"
"""Label of namespaces with runs."""
ANY = "any"
"""Placeholder for the name of a run; rights are the same for all runs of a namespace."""


async def known(console: Console, session: Session) -> dict[str, Any]:
    """Return `user`, `versions`, and `may`: for each namespace with runs a text with the user's permissions.

    :raises LoginEnded, KubeError: the token is no longer accepted, or the API server does not answer.
    """
    wanted = listing("v1", "namespaces", labels=SPACES)
    try:
        found = await console.client.get(session.token, wanted.path, wanted.query)
        spaces = sorted(str(each["metadata"]["name"]) for each in found["items"])
        texts = await asyncio.gather(*(_in(console, session, space) for space in spaces))
    except KubeError as error:
        if error.status != 403:
            raise
        spaces, texts = [], []
    may = [{"namespace": space, "text": text} for space, text in zip(spaces, texts, strict=True)]
    return {"user": clean(session.user), "versions": dict(console.config.versions), "may": may}


async def _in(console: Console, session: Session, space: str) -> str:
    parts = {"watch runs": of_watching(space), "see TensorBoards": (of_tensorboard(space),)}
    parts |= {f"{action} runs": of_action(action, space, ANY) for action in ACTIONS}
    granted = await console.rights.granted(session, [right for rights in parts.values() for right in rights])
    return ", ".join(what for what, rights in parts.items() if granted.issuperset(rights)) or "nothing"


NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._:-]{0,251}[A-Za-z0-9])?")
"""Pattern of each part of a path: names of Kubernetes, and characters that names of roles need in addition."""
VALUE = re.compile(r"[^\x00-\x1f\x7f]*")
LONGEST = 200
LONG = {"continue": 2_000}
"""Maximum characters of a parameter; `continue` contains a name of an object, which may be long."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def params_of(request: web.Request, known: Sequence[str] = ()) -> dict[str, str]:
    """Return the parameters of the path and the known ones of the query; ignore others.

    :raises web.HTTPNotFound: a part of the path is no valid name.
    :raises web.HTTPBadRequest: a value of the query is too long or contains control characters.
    """
    if not all(NAME.fullmatch(value) for value in request.match_info.values()):
        raise web.HTTPNotFound(text="There is no such page.")
    asked = {name: request.query[name] for name in known if name in request.query}
    if not all(len(it) <= LONG.get(name, LONGEST) and VALUE.fullmatch(it) for name, it in asked.items()):
        raise web.HTTPBadRequest(text="These parameters are invalid.")
    return {**asked, **request.match_info}


def key_of(page: Page, params: Mapping[str, str]) -> str:
    """Return the key under which the last view of a page with these parameters is kept."""
    return json.dumps([page.name, sorted((name, value) for name, value in params.items() if value)])


async def read(console: Console, session: Session, page: Page, params: Mapping[str, str]) -> dict[str, Any]:
    """Read the view of a page.

    :raises KubeError: status 403 if none of it may be read, 0 or 5xx if the API server does not answer.
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
    except ValueError:  # A run has reported a number that is not finite, which browsers do not parse.
        view = plain(view, VIEW_DEPTH)
    return view


def raise_what_is_refused(asked: Sequence[str], unread: Sequence[Unread], namespace: str) -> None:
    """
    :raises KubeError: the API server does not answer, so the view would be incomplete, or it refused every request.
    """
    away = [each for each in of_the_server(unread) if KubeError("", status=each.status).transient]
    if away:
        raise KubeError(away[0].reason, status=0)
    here = [path for path in asked if not namespace or f"/namespaces/{namespace}/" in path]
    refused = {each.path: each for each in unread if each.status == 403}
    if here and all(path in refused for path in here):
        raise KubeError(refused[here[0]].reason, status=403)


def html(page: Page) -> Handler:
    """Return the handler of a page."""

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
            notice = f"The API server does not answer. This page is {age} s old."
        if session.flash:
            notice, session.flash = f"{session.flash} {notice}".strip(), ""
        # A service has more supporting objects than a run, and only a playbook removes all of them.
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
    """Return the handler of a page as JSON."""

    async def handle(request: web.Request) -> web.StreamResponse:
        view = await read(request.app[CONSOLE], request[SESSION], page, params_of(request, page.query))
        return web.json_response(view)

    return handle


async def actions_here(console: Console, session: Session, params: Mapping[str, str]) -> list[str]:
    """Return the actions that the user may do with the run of a page; none if the rights cannot be read."""
    if not {"namespace", "run"} <= params.keys():
        return []
    wanted = {action: of_action(action, params["namespace"], params["run"]) for action in ACTIONS}
    try:
        granted = await console.rights.granted(session, [right for rights in wanted.values() for right in rights])
    except KubeError:
        return []
    return [action for action, rights in wanted.items() if granted.issuperset(rights)]


async def who(request: web.Request) -> web.Response:
    """Return the logged-in user, at /api/v1/session."""
    session = request[SESSION]
    return web.json_response({"user": clean(session.user), "site": request.app[CONSOLE].config.site})
