"""What one user may take of the console: kept views, ends of logs, streams, actions."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.unit.console.consoles import RUN, SETS, Stand, objects, run
from tests.unit.console.fake import FakeApi, User
from tests.unit.console.watching import until
from trainyard.console import page_cache, streams
from trainyard.console.page_cache import Kept
from trainyard.console.sessions import Session
from trainyard.console.shares import OfEach, Turns
from trainyard.console.streams import Streams
from trainyard.kube.api import KubeError
from trainyard.trainings.roles import GRACE_SECONDS

OPERATORS = [f"operator{number}" for number in range(5)]


def test_what_is_kept_is_counted_with_its_keys() -> None:
    mine = Kept()
    for number in range(20_000):
        mine.keep("alice", f"{'x' * 8_000}{number}", "{}")
    assert len(mine._kept) == page_cache.OF_LOGIN
    assert mine.bytes == sum(len(page) + len(text) + page_cache.EXTRA for (_, page), (text, _) in mine._kept.items())
    for number in range(3_000):
        mine.keep(f"user{number}", "x" * 8_000, "{}")
    assert mine.bytes <= page_cache.BYTES
    for session, _ in list(mine._kept):
        mine.forget(session)
    assert (mine.bytes, mine._of_login) == (0, {})


def test_made_up_parameters_make_no_other_page(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.log_in("viewer")
        for query in ("", "?a=1", f"?{'x' * 7_000}=1", "?" + "&".join(f"p{number}=1" for number in range(30))):
            for path in ("/", "/receipts", "/runs/trainings/mnist"):
                assert (await stand.get(path + query))[0] == 200
        assert len(stand.console.kept._kept) == 3
        stand.api.down = True
        stand.clock.ahead += 5
        assert "This page is" in (await stand.get("/receipts?b=2"))[1]

    run(scenario, tmp_path)


def test_who_wants_many_turns_waits_for_his_own() -> None:
    async def scenario() -> None:
        turns, held, free = Turns(in_all=3, of_one=2), [], asyncio.Event()

        async def want(who: str) -> None:
            async with turns.taken(who):
                held.append(who)
                await free.wait()

        tasks = [asyncio.create_task(want("alice")) for _ in range(10)]
        await asyncio.sleep(0.01)
        tasks += [asyncio.create_task(want("bob")) for _ in range(2)]
        await asyncio.sleep(0.01)
        assert held == ["alice", "alice", "bob"]
        tasks[5].cancel()
        free.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (held.count("alice"), held.count("bob")) == (9, 2)

    asyncio.run(scenario())


def test_turns_are_forgotten() -> None:
    async def scenario() -> None:
        each = OfEach(1)
        async with each.taken("alice"):
            assert len(each) == 1
        assert len(each) == 0

    asyncio.run(scenario())


def test_streams_are_counted_by_login_and_by_user() -> None:
    counted = Streams()
    logins = [Session(str(number), "", "", "alice", 0.0, 0.0) for number in range(3)]
    opened = [counted.counted(login) for login in logins[:2] for _ in range(streams.OF_LOGIN)]
    for each in opened:
        each.__enter__()
    for login in logins:
        with pytest.raises(KubeError) as caught, counted.counted(login):
            pass
        assert caught.value.status == 429
    with counted.counted(Session("4", "", "", "bob", 0.0, 0.0)):
        pass
    for each in opened:
        each.__exit__(None, None, None)


def test_stops_that_hang_hold_up_no_other_user(tmp_path: Path) -> None:
    """Their pods never end, and the object allows 31 years for that."""
    short, long = (f'"terminationGracePeriodSeconds": {seconds}' for seconds in (GRACE_SECONDS, 10**9))
    text = json.dumps(objects()).replace(short, long)
    assert long in text
    runs = {key: each for number in range(9) for key, each in json.loads(text.replace("mnist", f"r{number}")).items()}
    api = FakeApi(json.loads(text) | runs, {name: User(name, operates=True) for name in OPERATORS})
    api.ends_pods = False

    async def scenario(stand: Stand) -> None:
        async def stop(other: Stand, csrf: str, name: str) -> int:
            return (await other.post(f"{RUN.replace('mnist', name)}/stop", csrf))[0]

        hanging = []
        for number, token in enumerate(OPERATORS[:4]):
            async with stand.another() as other:
                csrf = await other.log_in(token)
                hanging += [asyncio.create_task(stop(other, csrf, f"r{2 * number + each}")) for each in range(2)]
                await until(lambda n=number: not {f"{SETS}/r{2 * n}", f"{SETS}/r{2 * n + 1}"} & api.objects.keys())
                assert await stop(other, csrf, "r8") == 429
        await stand.log_in(OPERATORS[4])
        csrf = await stand.log_in(OPERATORS[4])
        for pod in [each for each in api.objects if "/pods/r8-" in each]:
            del api.objects[pod]
        async with asyncio.timeout(5):
            assert await stop(stand, csrf, "r8") == 200
        assert not any(task.done() for task in hanging)
        for pod in [each for each in api.objects if "/pods/" in each]:
            del api.objects[pod]
        assert await asyncio.gather(*hanging) == [200] * 8

    run(scenario, tmp_path, api=api)
