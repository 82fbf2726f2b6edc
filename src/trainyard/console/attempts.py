"""Curves of all attempts of a run, from the events that its TensorBoard has read."""

from __future__ import annotations

import asyncio

from aiohttp import web

from ..core.untrusted import plain
from ..kube.api import KubeError
from ..trainings.run_detail import reading
from .app import CONSOLE
from .guard import SESSION
from .pages import params_of
from .permissions import of_tensorboard
from .tensorboard_proxy import TensorBoards, named
from .user_api import drive
from .views.curves import Points, attempts, of_board

NEWEST = 10
"""Maximum number of overlaid attempts; more cannot be distinguished."""
AT_ONCE = 4


class Attempts:
    """The handler.

    :param boards: of all claims.
    """

    def __init__(self, boards: TensorBoards) -> None:
        self._boards = boards

    async def handle(self, request: web.Request) -> web.Response:
        """Return `{attempts: [{name, curves: {tag: points}}]}`, the oldest first.

        The list is empty if the run has no TensorBoard or its TensorBoard does not answer.

        :raises KubeError: status 403, the user may not see the TensorBoard.
        """
        console, session, params = request.app[CONSOLE], request[SESSION], params_of(request)
        space, run = params["namespace"], params["run"]
        detail = await drive(reading(space, run, console.now()), console.lists.asker(session))
        claim = detail.files.get("claim", "")
        if not named(space, claim):
            return web.json_response({"attempts": []})
        if not await console.rights.granted(session, [of_tensorboard(space, claim)]):
            raise KubeError(f"You may not see TensorBoards in the namespace {space}.", status=403)
        if await self._boards.foreign(console, session, space, claim):
            return web.json_response({"attempts": []})
        boards = await self._boards.ask(space, claim, "data/runs", {})
        found = attempts(boards if isinstance(boards, list) else [], run)
        turns = asyncio.Semaphore(AT_ONCE)

        async def curve(board: str, tag: str) -> tuple[str, Points]:
            async with turns:
                wanted = {"run": board, "tag": tag}
                return tag, of_board(await self._boards.ask(space, claim, "data/plugin/scalars/scalars", wanted))

        names = list(found)[-NEWEST:]
        curves = [dict(await asyncio.gather(*(curve(*each) for each in found[name]))) for name in names]
        made = [{"name": name, "curves": each} for name, each in zip(names, curves, strict=True)]
        return web.json_response({"attempts": plain(made)})
