"""The API server that the console of browser tests stands before: a scene, and what becomes of it."""

from __future__ import annotations

import json
import time
from typing import Any

from aiohttp import web

from tests.browser.answers import answer
from tests.browser.cluster import Cluster
from tests.browser.world import SPACE
from tests.unit.console.fake import FakeApi, User

USERS = {"viewer": User("alice"), "operator": User("olga", operates=True)}
"""Token -> who has it."""
CHIEF = f"/api/v1/namespaces/{SPACE}/pods/mnist-ps-chief-0-0-ax9k2/log"
"""Of the run that tests watch."""


class SceneApi(FakeApi):
    """Objects and logs of a scene; lists, tables and kinds as the real server makes them."""

    def __init__(self, scene: Cluster) -> None:
        super().__init__(scene.objects, USERS)
        self._scene = scene
        self._ticks = 0
        for path, text in scene.texts.items():
            self.set_log(f"{path}/log", *(self._stamped(line) for line in text.splitlines()))

    def _stamped(self, line: str) -> str:
        """A line after its time, each later than the one before it."""
        self._ticks += 1
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(self._scene.now.timestamp()))
        return f"{moment}.{self._ticks:09d}Z {line}"

    def says(self, path: str, *lines: Any) -> None:
        """A pod says more; what is no text becomes a line of JSON."""
        self.say(path, *(self._stamped(each if isinstance(each, str) else json.dumps(each)) for each in lines))

    async def handle(self, request: web.Request) -> web.StreamResponse:
        streams = "watch" in request.query or "follow" in request.query
        plain = request.method == "GET" and not streams and not self.down
        if not plain or request.headers.get("Authorization", "").removeprefix("Bearer ") not in self.users:
            return await super().handle(request)
        path, query = request.path, dict(request.query)
        if path in self._logs:
            lines = self._logs[path][-int(query.get("tailLines", "100000")) :]
            return web.Response(text="".join(f"{line.partition(' ')[2]}\n" for line in lines))
        self._scene.objects = self.objects
        status, found = answer(self._scene, path, query, request.headers.get("Accept", ""))
        return web.json_response(found, status=status) if status == 200 else await super().handle(request)
