"""A console on loopback, before an API server of the tests, and browsers that log in to it."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp

from tests.unit.certificates import self_signed
from tests.unit.console.fake import FakeApi, User, listening
from tests.unit.training.samples import training
from trainyard.console.app import Console
from trainyard.console.console_config import Config
from trainyard.console.tensorboard_proxy import TensorBoards
from trainyard.console.views.page_table import PAGES
from trainyard.console.web_server import serving
from trainyard.core.waiter import Clock
from trainyard.trainings.jobset import run_object
from trainyard.trainings.objects import result_record
from trainyard.trainings.record import submitted

SPACE = "/api/v1/namespaces/trainings"
SETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/trainings/jobsets"
LIVE = f"{SETS}/mnist"
RECORD = f"{SPACE}/configmaps/mnist-result"
CHIEF = f"{SPACE}/pods/mnist-chief-0-0-abcde"
LOG = f"{CHIEF}/log"
RUN = "/api/v1/runs/trainings/mnist"
LIMIT = 300.0
"""Seconds after which a test hangs."""
USERS = {
    "viewer": User("alice"),
    "operator": User("olga", operates=True),
    "stranger": User("bob", namespaces=("others",)),
}


def objects() -> dict[str, Any]:
    """A run that goes on."""
    sample = training(logs={"claim": "training"})
    live = json.loads(json.dumps(run_object(sample, "20261121T120000Z-0001")))
    live["metadata"] |= {"uid": "u", "creationTimestamp": "2026-11-21T12:00:00Z"}
    labels = {
        "trainyard.dev/run": "mnist",
        "trainyard.dev/role": "chief",
        "batch.kubernetes.io/job-completion-index": "0",
    }
    meta = {"name": "mnist-chief-0-0-abcde", "namespace": "trainings", "labels": labels, "uid": "p"}
    meta["creationTimestamp"] = "2026-11-21T12:00:00Z"
    spec = live["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    pod = {
        "metadata": meta,
        "spec": spec,
        "status": {"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]},
    }
    return {LIVE: live, CHIEF: pod, RECORD: result_record(sample, submitted(sample, "20261121T120000Z-0001"))}


class Time(Clock):
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead

    def time(self) -> float:
        return super().time() + self.ahead

    def sleep(self, seconds: float) -> None:
        super().sleep(min(seconds, 0.02))


@dataclass(frozen=True)
class Stand:
    """A console with what it stands before."""

    console: Console
    api: FakeApi
    url: str
    tensorboard: str
    browser: aiohttp.ClientSession
    clock: Time

    @property
    def origin(self) -> dict[str, str]:
        return {"Origin": self.url}

    async def log_in(self, token: str) -> str:
        """Log in; the session's header value for actions."""
        form = {"token": token}
        async with self.browser.post(f"{self.url}/login", data=form, headers=self.origin, allow_redirects=False) as got:
            assert got.status == 303, await got.text()
            key = got.cookies["__Host-console"].value
        # The jar of aiohttp knows no ports, and keeps secure cookies of IP addresses from nobody but itself.
        self.browser.headers["Cookie"] = f"__Host-console={key}"
        session = self.console.sessions.find(key)
        assert session
        return session.csrf

    async def get(self, path: str, **headers: str) -> tuple[int, str]:
        async with self.browser.get(f"{self.url}{path}", headers=headers, allow_redirects=False) as got:
            return got.status, await got.text()

    async def post(self, path: str, csrf: str = "", data: Any = None, **headers: str) -> tuple[int, str]:
        sent = {**self.origin, "X-Console-Session": csrf, **headers}
        async with self.browser.post(f"{self.url}{path}", headers=sent, data=data, allow_redirects=False) as got:
            return got.status, await got.text()

    @asynccontextmanager
    async def another(self) -> AsyncIterator[Stand]:
        """The same console with a browser of its own."""
        async with aiohttp.ClientSession(connector=self.browser.connector, connector_owner=False) as browser:
            yield replace(self, browser=browser)


@asynccontextmanager
async def standing(
    folder: Path, api: FakeApi | None = None, board: Any = None, **settings: Any
) -> AsyncIterator[Stand]:
    """A console that listens.

    :param board: handler of all TensorBoards.
    """
    certificate, key = self_signed()
    for name, text in (("tls.crt", certificate), ("tls.key", key), ("ca.crt", certificate)):
        (folder / name).write_text(text)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    trusted = ssl.create_default_context(cafile=folder / "ca.crt")
    api, clock = api or FakeApi(objects(), USERS), Time()
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(listening(api.handle, context))
        boards = TensorBoards()
        if board:
            where = await stack.enter_async_context(listening(board))
            boards = TensorBoards(lambda namespace, claim: where)
        config = Config(
            api=url, api_ca=folder / "ca.crt", tls=folder, port=0, tensorboard_port=0, address="127.0.0.1", **settings
        )
        running = await stack.enter_async_context(serving(config, PAGES, clock=clock, boards=boards))
        browser = await stack.enter_async_context(
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusted), cookie_jar=aiohttp.DummyCookieJar())
        )
        ports = [f"https://127.0.0.1:{port}" for port in (running.port, running.tensorboard_port)]
        yield Stand(running.console, api, *ports, browser, clock)


def run(scenario: Callable[[Stand], Coroutine[Any, Any, None]], folder: Path, **options: Any) -> None:
    """Carry out a scenario; what hangs is ended, on a machine that does much else, too."""

    async def within() -> None:
        async with asyncio.timeout(LIMIT), standing(folder, **options) as stand:
            await scenario(stand)

    asyncio.run(within())


class Events:
    """Server-sent events as they come."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer

    async def next(self, kind: str = "") -> tuple[str, str, Any]:
        """(id, type, data) of the next event, of a type where one is asked for."""
        found: dict[str, str] = {}
        while True:
            async with asyncio.timeout(LIMIT):
                line = (await self._answer.content.readline()).decode()
            assert line, "the stream has ended"
            name, _, value = line.rstrip("\n").partition(": ")
            if line != "\n":
                found[name] = value
            elif "event" in found and kind in ("", found["event"]):
                return found.get("id", ""), found["event"], json.loads(found["data"])
            else:
                found = {}
