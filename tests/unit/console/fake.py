"""An API server over loopback HTTPS, with users, rights, watches and logs that are followed."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from tests.unit.apiserver import ApiServer

READ = ("get", "list", "watch")
PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/v\w+(?:/namespaces/(?P<namespace>[^/]+)(?=/))?/(?P<resource>[^/]+)"
    r"(?:/(?P<name>[^/]+)(?:/(?P<sub>[^/]+))?)?"
)


@dataclass(frozen=True)
class User:
    """Who has a token.

    :param namespaces: in which he may do things; None for all, and for what is in none.
    :param operates: whether he may do more than read.
    """

    name: str
    namespaces: Collection[str] | None = None
    operates: bool = False

    def may(self, verb: str, resource: str, namespace: str, name: str) -> bool:
        if self.namespaces is not None and namespace not in self.namespaces:
            return False
        if verb in READ:
            return not resource.startswith("secrets")
        ends = {
            ("create", "jobsets"),
            ("delete", "jobsets"),
            ("create", "jobs"),
            ("delete", "jobs"),
            ("delete", "pods"),
        }
        record = resource == "configmaps" and verb in ("patch", "delete") and name.endswith("-result")
        return self.operates and ((verb, resource) in ends or record)


class FakeApi(ApiServer):
    """Objects by path, as `ApiServer` has them; what is said to change is told to who watches.

    :param users: token -> who has it.
    """

    def __init__(self, objects: Mapping[str, Any], users: Mapping[str, User]) -> None:
        super().__init__(objects)
        self.users = dict(users)
        self.asked: list[tuple[str, str, str]] = []
        """(token, method, path) of every request but watches and logs that are followed."""
        self.streams: list[str] = []
        """Paths of streams that are open."""
        self.opened: list[tuple[str, dict[str, str]]] = []
        """(path, query) of every stream that was opened."""
        self.down = False
        self.gone_versions = 0
        """Watches that are answered with 410 from now on."""
        self.ends_pods = True
        """Whether pods end as soon as what runs them is deleted."""
        self._logs: dict[str, list[str]] = {}
        self._told: dict[str, list[asyncio.Queue[str | None]]] = {}

    def set_log(self, path: str, *lines: str) -> None:
        """What a pod has said until now."""
        self._logs[path] = list(lines)

    def say(self, path: str, *lines: str) -> None:
        """A pod says more."""
        self._logs.setdefault(path, []).extend(lines)
        for line in lines:
            self._tell(path, line)

    def change(self, kind: str, path: str, obj: Any) -> None:
        """Keep an object and tell who watches its collection."""
        self.objects[path] = obj
        if kind == "DELETED":
            del self.objects[path]
        event = {"type": kind, "object": {**obj, "metadata": {"resourceVersion": "12", **obj["metadata"]}}}
        self._tell(path.rpartition("/")[0], json.dumps(event))

    def __call__(self, method: str, path: str, query: Any, body: Any, kind: str) -> tuple[int, str]:
        answer = super().__call__(method, path, query, body, kind)
        if method == "DELETE" and "/jobsets/" in path and answer[0] == 200 and self.ends_pods:
            for pod in [each for each in self.objects if "/pods/" in each]:
                self.change("DELETED", pod, self.objects[pod])
        return answer

    def break_streams(self, path: str = "") -> None:
        """End the streams of a path, or all, as a server that is started anew does."""
        for each in [path] if path else self._told:
            self._tell(each, None)

    def _tell(self, path: str, line: str | None) -> None:
        for queue in self._told.get(path, ()):
            queue.put_nowait(line)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        assert "Cookie" not in request.headers
        streams = "watch" in request.query or "follow" in request.query
        if not streams:
            self.asked.append((token, request.method, request.path))
        if self.down:
            assert request.transport
            request.transport.abort()
            return web.Response()
        user = self.users.get(token)
        if user is None:
            return _status(401, "Unauthorized")
        body = json.loads(await request.text() or "null")
        if request.path.endswith("/selfsubjectreviews"):
            return web.json_response({"status": {"userInfo": {"username": user.name}}}, status=201)
        if request.path.endswith("/selfsubjectaccessreviews"):
            asked = body["spec"]["resourceAttributes"]
            resource = asked["resource"] + (f"/{asked['subresource']}" if "subresource" in asked else "")
            allowed = user.may(asked["verb"], resource, asked.get("namespace", ""), asked.get("name", ""))
            return web.json_response({"status": {"allowed": allowed}}, status=201)
        if not _allowed(user, request):
            return _status(403, f"{user.name} may not {request.method} {request.path}")
        if streams:
            return await self._stream(request)
        if request.path == "/version":
            return web.json_response({"gitVersion": "v1.36.3"})
        if request.path in self._logs:
            lines = self._logs[request.path][-int(request.query.get("tailLines", "100000")) :]
            return web.Response(body="".join(f"{each}\n" for each in lines).encode("utf-8", "surrogateescape"))
        status, text = self(request.method, request.path, list(request.query.items()), body, request.content_type)
        if request.method == "GET" and '"items"' in text:
            text = json.dumps({"metadata": {"resourceVersion": "11"}, **json.loads(text)})
        return web.Response(status=status, text=text, content_type="application/json")

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        if "watch" in request.query and self.gone_versions:
            self.gone_versions -= 1
            return _status(410, "too old")
        path, query = request.path, dict(request.query)
        response = web.StreamResponse()
        await response.prepare(request)
        queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._told.setdefault(path, []).append(queue)
        self.streams.append(path)
        self.opened.append((path, query))
        try:
            for line in self._logs.get(path, ()):
                if line[: len(query.get("sinceTime", ""))] >= query.get("sinceTime", ""):
                    await response.write(f"{line}\n".encode("utf-8", "surrogateescape"))
            while (said := await queue.get()) is not None:
                await response.write(f"{said}\n".encode("utf-8", "surrogateescape"))
        except ConnectionError:
            pass
        finally:
            self._told[path].remove(queue)
            self.streams.remove(path)
        return response


def _allowed(user: User, request: web.Request) -> bool:
    found = PATH.fullmatch(request.path)
    if not found:
        return True
    resource = found["resource"] + (f"/{found['sub']}" if found["sub"] else "")
    verbs = {"POST": "create", "PATCH": "patch", "DELETE": "delete", "GET": "get" if found["name"] else "list"}
    verb = "watch" if "watch" in request.query else verbs[request.method]
    return user.may(verb, resource, found["namespace"] or "", found["name"] or "")


def _status(code: int, message: str) -> web.Response:
    return web.json_response({"kind": "Status", "code": code, "message": message}, status=code)


@asynccontextmanager
async def listening(handler: Any, context: Any = None) -> AsyncIterator[str]:
    """URL of a server on this machine, with TLS where a context for that is given."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        yield f"{'https' if context else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
