"""Logs of the pods of a run: the last lines, and the lines as they come."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from aiohttp import web
from ansible.module_utils.trainyard.kube.api import KubeError
from ansible.module_utils.trainyard.kube.reads import path
from ansible.module_utils.trainyard.training.names import NAME_LABEL

from .api import LoginEnded
from .console import CONSOLE
from .guard import SESSION
from .lines import Splitter, readable
from .pages import params_of
from .streams import BEAT_SECONDS, STREAMS_KEY, event, opened, send

TAIL, LONGEST_TAIL = 500, 5_000
TAIL_BYTES = 1024 * 1024
READ_BYTES = 64 * 1024 * 1024
"""Of the log that are looked at for its last lines; of a hostile one no more."""
READ_SECONDS = 20.0
AT_ONCE_LINES = 500
"""In one event of a log that is followed."""


async def tail(request: web.Request) -> web.StreamResponse:
    """The last lines of a pod's log as text; where JSON is asked for, `{pod, text, cut}`, `cut` where there is more.

    Parameters: `tail`, number of lines; `previous=true` for the container's run before its last restart.
    """
    params = params_of(request)
    pod = await _pod_of_run(request, params)
    lines = _number(params.get("tail", ""), TAIL, LONGEST_TAIL)
    query = {"tailLines": str(lines)} | ({"previous": "true"} if params.get("previous") == "true" else {})
    kept: deque[str] = deque(maxlen=lines)
    size = read = 0
    cut, splitter = False, Splitter()
    try:
        async with (
            asyncio.timeout(READ_SECONDS),
            request.app[CONSOLE].client.stream(request[SESSION].token, f"{pod}/log", query) as chunks,
        ):
            async for chunk in chunks:
                read += len(chunk)
                for line, long in splitter.feed(chunk):
                    kept.append(readable(line, long))
                    size += len(kept[-1])
                    while size > TAIL_BYTES:
                        size -= len(kept.popleft())
                        cut = True
                if read > READ_BYTES:
                    cut = True
                    break
            kept.extend(readable(line, long) for line, long in splitter.rest())
    except KubeError as error:
        if error.status != 400:  # It has not begun, and has said nothing.
            raise
    except TimeoutError:
        cut = True
    text = "\n".join(kept)
    if "application/json" in request.headers.get("Accept", ""):
        return web.json_response({"pod": params["pod"], "text": text, "cut": cut or len(kept) == lines})
    return web.Response(text=text)


async def follow(request: web.Request) -> web.StreamResponse:
    """The lines of a pod's log as events `log` {pod, text}, beginning with its last ones; `end` when it has ended."""
    console, session, params = request.app[CONSOLE], request[SESSION], params_of(request)
    with request.app[STREAMS_KEY].counted(session):
        pod = await _pod_of_run(request, params)
        lines: asyncio.Queue[str | None] = asyncio.Queue(maxsize=10_000)
        query = {"follow": "true", "tailLines": str(_number(params.get("tail", ""), TAIL, LONGEST_TAIL))}
        reader = asyncio.create_task(_read(request, f"{pod}/log", query, lines))
        reader.add_done_callback(lambda done: done.cancelled() or done.exception())
        session.at_end.append(reader.cancel)
        try:
            async with opened(request) as response:
                while not reader.done() or not lines.empty():
                    said, over = await _take(lines)
                    if said:
                        await send(response, event("log", json.dumps({"pod": params["pod"], "text": "\n".join(said)})))
                    elif not over:
                        await send(response, b": \n\n")
                    if over or not console.sessions.alive(session):
                        break
                why = "" if console.sessions.alive(session) else "login"
                await send(response, event("end", json.dumps({"reason": why})))
        finally:
            reader.cancel()
            if reader.cancel in session.at_end:
                session.at_end.remove(reader.cancel)
    return response


async def _read(request: web.Request, log: str, query: Mapping[str, str], lines: asyncio.Queue[str | None]) -> None:
    """Put lines into the queue as they come; a browser that does not take them holds the log's reading up."""
    console, session = request.app[CONSOLE], request[SESSION]
    splitter = Splitter()
    try:
        try:
            async with console.client.stream(session.token, log, query) as chunks:
                async for chunk in chunks:
                    for line, cut in splitter.feed(chunk):
                        await lines.put(readable(line, cut))
        except LoginEnded:
            console.sessions.end(session)
        except KubeError as error:
            if error.status != 400:
                await lines.put(f"(the log cannot be read further: {error.message})")
        for line, cut in splitter.rest():
            await lines.put(readable(line, cut))
        await lines.put(None)
    except asyncio.CancelledError:
        with suppress(asyncio.QueueFull):
            lines.put_nowait(None)
        raise


async def _take(lines: asyncio.Queue[str | None]) -> tuple[list[str], bool]:
    """Lines that are there, waiting a while for the first, and whether there will be no more."""
    found: list[str] = []
    try:
        line = await asyncio.wait_for(lines.get(), BEAT_SECONDS)
        while line is not None and len(found) < AT_ONCE_LINES:
            found.append(line)
            if lines.empty():
                return found, False
            line = lines.get_nowait()
    except TimeoutError:
        return [], False
    if line is not None:
        found.append(line)
    return found, line is None


async def _pod_of_run(request: web.Request, params: Mapping[str, str]) -> str:
    """Path of a pod.

    :raises KubeError: status 404, the run has no such pod.
    """
    found = path("v1", "pods", params["namespace"], params["pod"])
    pod: Any = await request.app[CONSOLE].client.get(request[SESSION].token, found)
    if (pod["metadata"].get("labels") or {}).get(NAME_LABEL) != params["run"]:
        raise KubeError(f"The run {params['run']} has no pod {params['pod']}.", status=404)
    return found


def _number(text: str, default: int, most: int) -> int:
    return min(most, max(1, int(text))) if text.isascii() and text.isdecimal() and len(text) < 10 else default
