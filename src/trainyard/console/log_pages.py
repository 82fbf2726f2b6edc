"""Logs of the pods of a run: the last lines, and new lines as they arrive."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack, suppress
from sys import getsizeof
from typing import Any

from aiohttp import web

from ..kube.api import KubeError
from ..kube.pod_log import Line, Lines, Position, readable
from ..kube.reads import path
from ..trainings.names import NAME_LABEL
from ..trainings.pod_places import pod_state
from .app import CONSOLE, Console
from .bodies import finished
from .guard import SESSION
from .pages import params_of
from .permissions import FRESH_SECONDS, Right
from .sessions import Session
from .shares import LINE_BYTES, Turns
from .streams import BEAT_SECONDS, REVIEW_SECONDS, STREAMS_KEY, event, opened, send
from .user_api import Client, LoginEnded

TAIL, LONGEST_TAIL = 500, 5_000
TAIL_BYTES = 1024 * 1024
READ_BYTES = 64 * 1024 * 1024
"""Maximum bytes read for the last lines of a log, which may be hostile."""
READ_SECONDS = 20.0
AGAIN_SECONDS = 1.0
"""Pause before a followed log continues with another connection."""
WAITING = 1
"""Maximum texts that wait for a browser; each holds the lines that arrived together, a few hundred KiB at most."""
Texts = asyncio.Queue[str | None]
"""Texts for a browser; None marks the end."""


TAILS, TAILS_OF_USER = 8, 4
"""Ends of logs that are read or sent concurrently, in total and of one user: each takes a few MiB."""
WAIT_SECONDS = 30.0
"""Timeout for a turn."""


class Tails:
    """The handler for the last lines of a log."""

    def __init__(self) -> None:
        self._turns = Turns(TAILS, TAILS_OF_USER)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """
        :raises KubeError: status 429, too many logs are being read.
        """
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(WAIT_SECONDS):
                    await stack.enter_async_context(self._turns.taken(request[SESSION].user))
            except TimeoutError:
                raise KubeError("Too many logs are being read.", status=429) from None
            return await finished(request, await tail(request))


async def tail(request: web.Request) -> web.Response:
    """Return the last lines of a pod's log as text, or as JSON `{pod, text, cut}` if the client accepts it.

    `cut` is true if there are more lines. Parameters: `tail`, number of lines; `previous=true` for the container's run
    before its last restart.
    """
    params = params_of(request, ("tail", "previous"))
    pod = await _pod_of_run(request, params)
    lines = _number(params.get("tail", ""), TAIL, LONGEST_TAIL)
    query = {"tailLines": str(lines)} | ({"previous": "true"} if params.get("previous") == "true" else {})
    kept: deque[str] = deque(maxlen=lines)
    size = read = 0
    cut, splitter = False, Lines(LINE_BYTES, stamped=False, last=True)
    try:
        async with (
            asyncio.timeout(READ_SECONDS),
            request.app[CONSOLE].client.stream(request[SESSION].token, f"{pod}/log", query) as chunks,
        ):
            async for chunk in chunks:
                read += len(chunk)
                for line in splitter.feed(chunk):
                    kept.append(_shown(line))
                    size += getsizeof(kept[-1])
                    while size > TAIL_BYTES:
                        size -= getsizeof(kept.popleft())
                        cut = True
                if read > READ_BYTES:
                    cut = True
                    break
            kept.extend(map(_shown, splitter.rest()))
    except KubeError as error:
        if not error.no_log:  # The container has not started, so it has no lines.
            raise
    except TimeoutError:
        cut = True
    text = "\n".join(kept)
    if "application/json" in request.headers.get("Accept", ""):
        return web.json_response({"pod": params["pod"], "text": text, "cut": cut or len(kept) == lines})
    return web.Response(text=text)


async def follow(request: web.Request) -> web.StreamResponse:
    """Send the lines of a pod's log as events `log` {pod, text}, starting with the last ones, and `end` at its end."""
    console, session, params = request.app[CONSOLE], request[SESSION], params_of(request, ("tail",))
    right = Right("get", "", "pods/log", params["namespace"], params["pod"])
    with request.app[STREAMS_KEY].counted(session):
        pod = await _pod_of_run(request, params)
        texts = Texts(maxsize=WAITING)
        first = str(_number(params.get("tail", ""), TAIL, LONGEST_TAIL))
        reader = asyncio.create_task(read_on(console, session, pod, first, texts))
        reader.add_done_callback(lambda done: done.cancelled() or done.exception())
        session.at_end.append(reader.cancel)
        try:
            async with opened(request) as response:
                why, reviewed = "", console.clock.monotonic()
                while not why and (not reader.done() or not texts.empty()):
                    try:
                        said = await asyncio.wait_for(texts.get(), BEAT_SECONDS)
                    except TimeoutError:
                        await send(response, b": \n\n")
                    else:
                        if said is None:
                            break
                        await send(response, event("log", json.dumps({"pod": params["pod"], "text": said})))
                    if console.clock.monotonic() - reviewed > REVIEW_SECONDS:
                        reviewed = console.clock.monotonic()
                        why = await _refused(console, session, right)
                why = why if console.sessions.alive(session) else "login"
                await send(response, event("end", json.dumps({"reason": why})))
        finally:
            reader.cancel()
            if reader.cancel in session.at_end:
                session.at_end.remove(reader.cancel)
    return response


async def _refused(console: Console, session: Session, right: Right) -> str:
    """Return `rights` if the user no longer has the right; empty otherwise, also if the API server does not answer."""
    try:
        return "" if await console.rights.granted(session, [right], good=FRESH_SECONDS) else "rights"
    except LoginEnded:
        console.sessions.end(session)
    except KubeError:
        pass
    return ""


async def read_on(console: Console, session: Session, pod: str, first: str, texts: Texts) -> None:
    """Put lines into the queue until the pod has ended; a browser that does not receive them pauses the reading.

    A lost connection, for instance after a long silence, is opened again and continues after the last line.

    :param pod: path of the pod.
    :param first: number of last lines to begin with.
    """
    at = Position()
    try:
        try:
            while True:
                query = {"follow": "true", "timestamps": "true"}
                query |= {"sinceTime": at.stamp} if at.stamp else {"tailLines": first}
                rest = await _read(console.client, session.token, f"{pod}/log", query, at, texts)
                if await _ended(console.client, session.token, pod):
                    await _put(rest, at, texts)
                    break
                await asyncio.sleep(AGAIN_SECONDS)
        except LoginEnded:
            console.sessions.end(session)
        except KubeError as error:
            if not error.no_log:  # The container has not started, so it has no lines.
                await texts.put(f"(the log cannot be read further: {error.message})")
        await texts.put(None)
    except asyncio.CancelledError:
        with suppress(asyncio.QueueFull):
            texts.put_nowait(None)
        raise


async def _read(
    client: Client, token: str, log: str, query: Mapping[str, str], at: Position, texts: Texts
) -> list[Line]:
    """Put the lines of one connection that are after a position, and advance it; return a line without an end.

    :raises LoginEnded, KubeError: the server refuses.
    """
    splitter = Lines(LINE_BYTES, last=True)
    at.begin()
    try:
        async with client.stream(token, log, query) as chunks:
            async for chunk in chunks:
                await _put(splitter.feed(chunk), at, texts)
        return list(splitter.rest())
    except KubeError as error:
        if not error.no_answer:
            raise
        return []


async def _put(lines: Iterable[Line], at: Position, texts: Texts) -> None:
    found = [_shown(line) for line in lines if at.is_new(line)]
    if found:
        await texts.put("\n".join(found))


def _shown(line: Line) -> str:
    return readable(line.text, line.cut)


async def _ended(client: Client, token: str, pod: str) -> bool:
    """Return whether a pod has ended or is deleted.

    :raises LoginEnded, KubeError: the server refuses.
    """
    try:
        return pod_state(await client.get(token, pod))[0] == "ended"
    except KubeError as error:
        if error.status == 404 or error.no_answer:
            return error.status == 404
        raise


async def _pod_of_run(request: web.Request, params: Mapping[str, str]) -> str:
    """Return the path of a pod.

    :raises KubeError: status 404, the run has no such pod.
    """
    found = path("v1", "pods", params["namespace"], params["pod"])
    pod: Any = await request.app[CONSOLE].client.get(request[SESSION].token, found)
    if (pod["metadata"].get("labels") or {}).get(NAME_LABEL) != params["run"]:
        raise KubeError(f"The run {params['run']} has no pod {params['pod']}.", status=404)
    return found


def _number(text: str, default: int, most: int) -> int:
    return min(most, max(1, int(text))) if text.isascii() and text.isdecimal() and len(text) < 10 else default
