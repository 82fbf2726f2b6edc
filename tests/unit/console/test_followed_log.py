"""A log that is followed: for as long as its pod lives and its reader may see it, and with little memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from tests.unit.console.consoles import CHIEF, LOG, RUN, Events, Stand, run
from tests.unit.console.fake import User
from tests.unit.console.watching import until, watching
from trainyard.console import log_pages, streams
from trainyard.console import user_api as calls
from trainyard.console.sessions import Session

CHUNK = b"2026-11-21T12:00:00.%09dZ " + b"x" * 60_000 + b"\n"


def line(number: int) -> str:
    return f"2026-11-21T12:00:00.{number:09d}Z line {number}"


def following(stand: Stand) -> Any:
    path = f"{stand.url}{RUN}/logs/{CHIEF.rpartition('/')[2]}/events"
    return stand.browser.get(path, timeout=aiohttp.ClientTimeout(total=None))


def test_it_goes_on_after_a_silence_and_a_connection_that_breaks_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "SILENCE_SECONDS", 0.3)
    monkeypatch.setattr(log_pages, "AGAIN_SECONDS", 0.05)

    async def scenario(stand: Stand) -> None:
        stand.api.set_log(LOG, line(1))
        await stand.log_in("viewer")
        async with following(stand) as answer:
            mine = Events(answer)
            for number in (1, 2, 3):
                assert (await mine.next())[1:] == ("log", {"pod": CHIEF.rpartition("/")[2], "text": f"line {number}"})
                # Nothing comes for longer than a connection may be silent, and then one that is open breaks off.
                seen = len(stand.api.opened)
                await until(lambda seen=seen: len(stand.api.opened) > seen and LOG in stand.api.streams)
                stand.api.break_streams(LOG)
                await until(lambda seen=seen: len(stand.api.opened) > seen + 1 and LOG in stand.api.streams)
                stand.api.say(LOG, line(number + 1))
            assert (await mine.next("log"))[2]["text"] == "line 4"
            stand.api.objects[CHIEF] = {**stand.api.objects[CHIEF], "status": {"phase": "Succeeded"}}
            stand.clock.ahead += 2
            assert (await mine.next())[1:] == ("end", {"reason": ""})

    run(scenario, tmp_path)


def test_who_may_not_see_it_any_more_gets_no_more_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_pages, "BEAT_SECONDS", 0.1)
    monkeypatch.setattr(streams, "BEAT_SECONDS", 0.1)

    async def scenario(stand: Stand) -> None:
        stand.api.set_log(LOG, line(1))
        await stand.log_in("viewer")
        async with following(stand) as log, watching(stand) as page:
            of_log, of_page = Events(log), Events(page)
            await of_log.next("log")
            await of_page.next("run")
            stand.api.users["viewer"] = User("alice", namespaces=("others",))
            stand.clock.ahead += streams.REVIEW_SECONDS + 1
            assert (await of_log.next("end"))[2] == {"reason": "rights"}
            assert (await of_page.next("end"))[2] == {"reason": "rights"}

    run(scenario, tmp_path)


def test_a_browser_that_takes_nothing_holds_the_reading_up() -> None:
    taken = 0

    class Hostile:
        @asynccontextmanager
        async def stream(self, *_: Any) -> AsyncIterator[AsyncIterator[bytes]]:
            async def chunks() -> AsyncIterator[bytes]:
                nonlocal taken
                while True:
                    taken += 1
                    yield CHUNK % taken

            yield chunks()

    async def scenario() -> None:
        console: Any = SimpleNamespace(client=Hostile())
        texts = log_pages.Texts(maxsize=log_pages.WAITING)
        session = Session("key", "csrf", "token", "alice", ends=float("inf"), used=0.0)
        reader = asyncio.create_task(log_pages.read_on(console, session, CHIEF, "500", texts))
        for _ in range(100):
            await asyncio.sleep(0)
        assert not reader.done() and taken * len(CHUNK) < 256 * 1024
        reader.cancel()

    asyncio.run(scenario())
