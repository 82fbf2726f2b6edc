"""Calls to the API server with the token of the user, and with limits on time, size and number.

Parts: a cache that keeps answers for a moment; the client; the driver of readers. With the cache, the client sends
concurrent equal requests once. Readers request data without knowing the transport; the driver sends their requests with
a user's token.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Mapping
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
from yarl import URL

from ..core.waiter import CLOCK, Clock
from ..kube.api import KubeError
from ..kube.reads import Get, Reader, Unread

SECONDS = 1.5
BYTES = 6 * 1024 * 1024
"""Limit of all cached answers in their serialized form; as objects they are several times as large."""

EXTRA = 2_000
"""Bytes added per answer for its key, which contains a token and a path."""

Made = tuple[Any, int]
"""A value and its approximate bytes."""


class Cache:
    """Values by key.

    :param seconds: lifetime of a value.
    :param limit: bytes of all values in total; the oldest is dropped first.
    """

    def __init__(self, clock: Clock = CLOCK, *, seconds: float = SECONDS, limit: int = BYTES) -> None:
        self._clock = clock
        self._seconds = seconds
        self._limit = limit
        self._kept: OrderedDict[Hashable, tuple[float, Any, int]] = OrderedDict()
        self._bytes = 0
        self._asked: dict[Hashable, asyncio.Task[Made]] = {}

    async def get(self, key: Hashable, make: Callable[[], Awaitable[Made]]) -> Any:
        """Return the value of a key; if there is none, make it. Concurrent callers wait for the same value.

        A caller that is cancelled does not cancel the value for the others. An error is raised for all who wait, and is
        not cached.
        """
        self._sweep()
        if key in self._kept:
            return self._kept[key][1]
        if (task := self._asked.get(key)) is None:
            task = self._asked[key] = asyncio.ensure_future(self._make(key, make))
            task.add_done_callback(_look_at)
        value, _ = await asyncio.shield(task)
        return value

    async def _make(self, key: Hashable, make: Callable[[], Awaitable[Made]]) -> Made:
        try:
            value, size = await make()
        finally:
            del self._asked[key]
        size += EXTRA
        self._kept[key] = self._clock.monotonic(), value, size
        self._bytes += size
        self._sweep()
        return value, size

    def _sweep(self) -> None:
        due = self._clock.monotonic() - self._seconds
        while self._kept:
            key, (made, _, size) = next(iter(self._kept.items()))
            if made > due and self._bytes <= self._limit:
                return
            del self._kept[key]
            self._bytes -= size


def _look_at(task: asyncio.Task[Made]) -> None:
    """Retrieve the exception of a task, so that asyncio does not log it if every caller has left."""
    if not task.cancelled():
        task.exception()


CALL_SECONDS = 15.0
LOG_SECONDS = 5.0
"""Timeout for the log of a pod, which comes from its node: a node that hangs must not delay other requests."""
CONNECT_SECONDS = 5.0
SILENCE_SECONDS = 90.0
"""Read timeout of a stream; a watch sends a bookmark about every minute."""
ANSWER_BYTES, ALL_BYTES = 6 * 1024 * 1024, 24 * 1024 * 1024
"""Limits of one answer, and of all answers being read: as objects they are several times as large, in 256 MiB."""
LOG_BYTES = 1024 * 1024
"""Bytes kept of the end of a log if a page requests its last lines; a line may have many MiB."""
LARGER = "the answer is larger than"
AT_ONCE, LOGS_AT_ONCE = 16, 8
"""Maximum concurrent calls, and calls for logs; further calls wait. Streams are not counted."""

Query = Mapping[str, str]
_PATH = re.compile(r"(?:/[A-Za-z0-9_-](?:[A-Za-z0-9._:-]|%3A)*)+")


class LoginEnded(Exception):
    """Raised if the API server no longer accepts the token: it was revoked or has expired."""


class Client:
    """The API server.

    :param base: `https://host:port`.
    :param authority: file with the CA certificates for the API server.
    """

    def __init__(self, base: str, authority: Path, clock: Clock = CLOCK) -> None:
        self._base = base
        self._tls = ssl.create_default_context(cafile=str(authority))
        self._turns, self._turns_of_logs = asyncio.Semaphore(AT_ONCE), asyncio.Semaphore(LOGS_AT_ONCE)
        self._cache = Cache(clock)
        self._reading = 0
        self._http: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Client:
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._tls, limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=CALL_SECONDS, sock_connect=CONNECT_SECONDS),
            headers={"User-Agent": "trainyard-console"},
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._http:
            await self._http.close()

    async def call(
        self,
        token: str,
        method: str,
        path: str,
        *,
        query: Query | Iterable[tuple[str, str]] = (),
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        waits: bool = True,
    ) -> tuple[int, str]:
        """Send a request and return its status and text. Status 0 means no answer; the text is the reason.

        :param waits: whether to wait for a turn.
        :raises LoginEnded: the token is not accepted.
        """
        headers = {**_login(token), "Accept": accept, "Content-Type": content_type}
        data = None if body is None else json.dumps(body).encode()
        log = path.endswith("/log")
        turns = self._turns_of_logs if log else self._turns
        limit = aiohttp.ClientTimeout(total=LOG_SECONDS if log else CALL_SECONDS, sock_connect=CONNECT_SECONDS)
        url = self._url(path, query)
        try:
            async with (
                turns if waits else nullcontext(),
                self._session.request(
                    method, url, headers=headers, data=data, timeout=limit, allow_redirects=False
                ) as answer,
            ):
                text = await self._bounded(answer, end=log)
                status = answer.status
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return 0, _why(error)
        if status == 401:
            raise LoginEnded
        return status, text

    async def get(
        self,
        token: str,
        path: str,
        query: Query | None = None,
        *,
        accept: str = "",
        text: bool = False,
    ) -> Any:
        """Return the content of a path, at most a moment old. Do not modify it, because it is shared.

        :param accept: media type of the answer if it is not plain JSON.
        :param text: whether the answer is text instead of JSON.

        :raises LoginEnded: the token is not accepted.
        :raises KubeError: the server refuses (its status), or does not answer (status 0).
        """
        pairs = tuple(sorted((query or {}).items()))

        async def make() -> tuple[Any, int]:
            wanted = "text/plain, */*" if text else accept or "application/json"
            status, said = await self.call(token, "GET", path, query=pairs, accept=wanted)
            return (checked if text else parsed)(status, said, path), len(said)

        return await self.cached((token, path, pairs, accept, text), make)

    async def cached(self, key: Hashable, make: Callable[[], Awaitable[tuple[Any, int]]]) -> Any:
        """Return the cached value of a key, which contains the token; see `Cache.get`."""
        return await self._cache.get(key, make)

    async def post(self, token: str, path: str, body: Any) -> Any:
        """Send a POST request that changes nothing, such as a review, and return its answer.

        :raises LoginEnded, KubeError: as `get`.
        """
        status, text = await self.call(token, "POST", path, body=body)
        return parsed(status, text, path)

    @asynccontextmanager
    async def stream(self, token: str, path: str, query: Query) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yield the bytes of a long-running answer as they arrive.

        :raises LoginEnded, KubeError: as `get`; status 0 if the connection breaks while it is read.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS)
        try:
            async with self._session.get(
                self._url(path, query), headers=_login(token), timeout=timeout, allow_redirects=False
            ) as answer:
                if answer.status == 401:
                    raise LoginEnded
                if answer.status != 200:
                    checked(answer.status, await self._bounded(answer), path)
                yield answer.content.iter_any()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise KubeError(f"The connection was lost: {_why(error)}.", status=0) from error

    async def _bounded(self, answer: aiohttp.ClientResponse, *, end: bool = False) -> str:
        """Read the text of an answer.

        :param end: whether to keep only the end if the answer is longer than `LOG_BYTES`.
        :raises aiohttp.ClientPayloadError: the answer is too large, or too many are being read.
        """
        found = bytearray()
        try:
            async for chunk in answer.content.iter_any():
                found += chunk
                self._reading += len(chunk)
                if end and len(found) > 2 * LOG_BYTES:
                    self._reading -= len(found) - LOG_BYTES
                    del found[:-LOG_BYTES]
                if len(found) > ANSWER_BYTES:
                    raise aiohttp.ClientPayloadError(f"{LARGER} {ANSWER_BYTES // 1024 // 1024} MiB")
                if self._reading > ALL_BYTES:
                    raise aiohttp.ClientPayloadError("the console reads too much data at once")
        finally:
            self._reading -= len(found)
        return found.decode("utf-8", "replace")

    @property
    def _session(self) -> aiohttp.ClientSession:
        assert self._http is not None, "used outside of `async with`"
        return self._http

    def _url(self, path: str, query: Query | Iterable[tuple[str, str]]) -> URL:
        """
        :raises KubeError: status 404, the path is no path of the API, such as one with `..`.
        """
        if not _PATH.fullmatch(path):
            raise KubeError("The API server has no such path.", status=404)
        return URL(self._base + path, encoded=True).with_query(list(dict(query).items()))


def checked(status: int, text: str, what: str) -> str:
    """Return the text of an answer.

    :raises KubeError: the status is no success.
    """
    if status == 0:
        raise KubeError(f"The API server does not answer: {text}.", status=0)
    if 200 <= status < 300:
        return text
    try:
        said = json.loads(text).get("message")
    except (ValueError, AttributeError, RecursionError):
        said = None
    raise KubeError(f"{what}: {str(said or text)[:500]} (status {status}).", status=status)


def parsed(status: int, text: str, what: str) -> Any:
    """Parse the JSON of an answer.

    :raises KubeError: the status is no success, or the text is no JSON.
    """
    try:
        return json.loads(checked(status, text, what))
    except (ValueError, RecursionError):
        raise KubeError(f"{what}: the answer is no JSON.", status=500) from None


def _login(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _why(error: BaseException) -> str:
    return "it took too long" if isinstance(error, TimeoutError) else str(error) or type(error).__name__


Ask = Callable[[Get], Awaitable[Any]]
"""Returns the content of a path, or an `Unread`."""
USAGE = "/apis/metrics.k8s.io/"
T = TypeVar("T")


async def drive(reader: Reader[T], ask: Ask) -> T:
    """Run a reader and return its result; send requests that it yields together concurrently."""
    answer: Any = None
    while True:
        try:
            wanted = reader.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result
        if isinstance(wanted, Get):
            answer = await ask(wanted)
        else:
            answer = tuple(await asyncio.gather(*map(ask, wanted)))


def of_the_server(unread: Iterable[Unread]) -> list[Unread]:
    """Return the failures that concern the API server itself, without logs (from a node) and usage (metrics-server)."""
    return [each for each in unread if not each.path.endswith("/log") and not each.path.startswith(USAGE)]
