"""The console under load, in a process of its own: its memory, and how long a user waits beside those who attack it."""

from __future__ import annotations

import asyncio
import itertools
import json
import statistics
from pathlib import Path

import aiohttp
import pytest

from tests.unit.console.consoles import LOG, RUN, objects
from tests.unit.console.fake import FakeApi, User
from tests.unit.console.large import PODS, Large
from tests.unit.console.load import Flood, Process, console, stretch, timed

MOST = 160.0
"""MB; its pod has 256 MiB."""
LIMIT = 600.0
LINES = [f"2026-11-21T12:00:00.{number:09d}Z {'x' * 250}" for number in range(5_000)]
STALLS = {"silent": 300, "handshake": 400, "head": 300, "body": 300}
OPERATORS = [f"operator{number}" for number in range(5)]
MADE_UP = [
    pytest.param(1_000, marks=pytest.mark.slow),
    pytest.param(20_000, marks=[pytest.mark.slow, pytest.mark.proof]),
]


def cluster() -> FakeApi:
    """Nine runs whose pods never end."""
    one = json.dumps(objects())
    found = {key: each for number in range(9) for key, each in json.loads(one.replace("mnist", f"r{number}")).items()}
    users = {"viewer": User("alice")} | {name: User(name, operates=True) for name in OPERATORS}
    api = FakeApi(json.loads(one) | found, users)
    api.ends_pods = False
    api.set_log(LOG, *LINES)
    return api


@pytest.mark.slow
def test_clients_without_a_login(tmp_path: Path) -> None:
    """1,000 connections and 300 stalled bodies; what ends is opened again."""

    async def scenario() -> None:
        async with console(tmp_path, cluster()) as process, process.browser() as user:
            await process.log_in(user, "viewer")
            idle, flood = process.memory, Flood(process.port, renewed=20.0)
            for kind, number in STALLS.items():
                flood.begin(kind, number, at_once=5)
            pages, logins = [], []
            for number in itertools.count():
                pages.append(await timed(lambda: page(process, user)))
                if number % 10 == 0:
                    logins.append(await timed(lambda: new_login(process)))
                if number >= 40 and flood.opened.total() + flood.failed >= sum(STALLS.values()):
                    break
                await asyncio.sleep(0.2)
            await flood.end()
            say(process, f"{idle:.0f} MB before, {dict(flood.opened)}, {flood.failed} failed", page=pages, login=logins)
            assert flood.opened.total() >= 1_000
            assert process.memory < MOST
            assert nearly_all(pages) < 1.0 * stretch()

    asyncio.run(asyncio.wait_for(scenario(), LIMIT))


@pytest.mark.parametrize("made_up", MADE_UP)
def test_users(made_up: int, tmp_path: Path) -> None:
    """Made-up parameters, 50 ends of a log that are not taken, and eight stops that hang, of four users."""

    async def scenario() -> None:
        async with console(tmp_path, cluster()) as process, process.browser() as viewer:
            await process.log_in(viewer, "viewer")
            turns = asyncio.Semaphore(6)

            async def ask(number: int) -> None:
                async with turns, viewer.get(f"{process.url}/receipts?{'x' * 7_000}{number}=1") as got:
                    assert got.status == 200

            await asyncio.gather(*map(ask, range(made_up)))
            before = process.memory
            tails = [asyncio.create_task(tail(process, viewer)) for _ in range(50)]
            for number, token in enumerate(OPERATORS[:4]):
                async with process.browser() as operator:
                    csrf = await process.log_in(operator, token)
                    runs = (2 * number, 2 * number + 1, 8)
                    found = await asyncio.gather(*(stop(process, operator, csrf, f"r{each}") for each in runs))
                    assert sorted(found) == [200, 200, 429]
            actions = []
            async with process.browser() as operator:
                csrf = await process.log_in(operator, OPERATORS[4])
                async with asyncio.timeout(LIMIT):
                    actions.append(await timed(lambda: stop(process, operator, csrf, "gone")))
                    actions.append(await timed(lambda: stop(process, operator, csrf, "mnist", "continue")))
            pages = [await timed(lambda: page(process, viewer)) for _ in range(5)]
            for task in tails:
                task.cancel()
            await asyncio.gather(*tails, return_exceptions=True)
            say(process, f"{before:.0f} MB after {made_up} parameters", page=pages, action=actions)
            assert process.memory < MOST
            assert max(actions) < 5.0

    asyncio.run(asyncio.wait_for(scenario(), LIMIT))


async def page(process: Process, user: aiohttp.ClientSession) -> None:
    async with user.get(f"{process.url}/") as got:
        assert got.status == 200, "the login is lost"
        await got.read()


async def new_login(process: Process) -> None:
    async with process.browser() as another:
        await process.log_in(another, "operator0")


async def tail(process: Process, user: aiohttp.ClientSession) -> None:
    """Ask for the end of a log, and take little of it."""
    async with user.get(f"{process.url}{RUN}/logs/{LOG.split('/')[-2]}?tail=5000") as got:
        await got.content.read(1)
        await asyncio.sleep(LIMIT)


async def stop(process: Process, user: aiohttp.ClientSession, csrf: str, run: str, action: str = "stop") -> int:
    sent = {"Origin": process.url, "X-Console-Session": csrf}
    where = f"{process.url}{RUN.replace('mnist', run)}/{action}"
    async with user.post(where, headers=sent) as got:
        await got.read()
        return got.status


def nearly_all(seconds: list[float]) -> float:
    """What nine of ten took at most: a machine that does much else stops each process now and then."""
    return statistics.quantiles(seconds, n=10)[-1]


def say(process: Process, what: str, **took: list[float]) -> None:
    times = [f"{name} {statistics.median(each):.2f} s, at most {max(each):.2f} s" for name, each in took.items()]
    print(f"{process.memory:.0f} MB at most; {what}; {'; '.join(times)}")


@pytest.mark.slow
def test_a_large_cluster(tmp_path: Path) -> None:
    """5,000 pods and 500 nodes, two users: Runs and Nodes, the first time and from then on."""

    async def scenario() -> None:
        api = Large({"viewer": User("alice"), "another": User("ann")}, 5_000, 500)
        size = statistics.mean(map(len, api.texts[PODS]))
        assert 5_000 < size < 8_000
        async with console(tmp_path, api) as process, process.browser() as one, process.browser() as two:
            await process.log_in(one, "viewer")
            await process.log_in(two, "another")
            first, cpu = [], []
            for path in ("/nodes", "/"):
                before = process.cpu
                first.append(await timed(lambda path=path: shown(process, one, path)))
                cpu.append(process.cpu - before)
            read = len(api.pages)
            later = []
            for _ in range(3):
                await asyncio.sleep(2)
                for user in (one, two):
                    later += [
                        await timed(lambda user=user, path=path: shown(process, user, path)) for path in ("/nodes", "/")
                    ]
            say(
                process,
                f"{size:.0f} bytes a pod, pages of lists {read} and {len(api.pages)}",
                cpu=cpu,
                first=first,
                later=later,
            )
            assert process.memory < 200.0
            assert nearly_all(later) < 2.0 * stretch()
            # The first time, the API server and the tests need the processors as well.
            assert max(cpu) < 2.0
            # Both users read the lists that the first has read, which watches keep.
            assert len(api.pages) == read

    asyncio.run(asyncio.wait_for(scenario(), LIMIT))


async def shown(process: Process, user: aiohttp.ClientSession, path: str) -> None:
    async with user.get(f"{process.url}{path}") as got:
        text = await got.text()
        assert got.status == 200, text[-500:]
        assert ("node-499" if path == "/nodes" else "mnist") in text
