"""Wrong tokens are answered late, at a bounded pace; a right one is taken at once, whoever else fails."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.console.consoles import Time
from trainyard.console import throttle
from trainyard.console.connections import Connections
from trainyard.console.login import admitted
from trainyard.console.throttle import Throttle
from trainyard.console.user_api import LoginEnded

LOOPBACK, OFFICE = "127.0.0.1", "192.0.2.7"
HOUR = 3_600


class Console(SimpleNamespace):
    """What a login needs of a console; the API server knows one token."""

    def __init__(self) -> None:
        self.clock, self.slept = Time(), []
        super().__init__(throttle=Throttle(self.clock, self._sleep), connections=Connections(), client=self)
        self.asked = self.at_once = self.most = 0
        self.free = asyncio.Event()
        self.free.set()

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)

    async def post(self, token: str, path: str, body: Any) -> Any:
        self.asked += 1
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            await self.free.wait()
        finally:
            self.at_once -= 1
        if token != "right":
            raise LoginEnded
        return {"status": {"userInfo": {"username": "alice"}}}


def late(seconds: list[float]) -> list[float]:
    """Delays of answers; a turn that is kept delays no answer."""
    return [each for each in seconds if each not in (0.0, throttle.HELD_SECONDS)]


@pytest.mark.parametrize("address", [LOOPBACK, OFFICE])
def test_an_hour_of_wrong_tokens(address: str) -> None:
    """360 of them from one address, and a right one each minute: 60 of 60 are taken at once."""

    async def scenario() -> None:
        console, taken = Console(), 0
        for second in range(0, HOUR, 10):
            assert await admitted(console, address, "wrong", asyncio.Protocol()) == ""
            if second % 60 == 30:
                before = len(console.slept)
                taken += await admitted(console, address, "right", asyncio.Protocol()) == "alice"
                assert late(console.slept[before:]) == []
            console.clock.ahead += 10
        assert (taken, console.asked) == (60, 420)
        if address == LOOPBACK:
            assert late(console.slept) == []

    asyncio.run(scenario())


def test_failures_of_an_address_are_answered_later_and_later() -> None:
    async def scenario() -> None:
        console = Console()
        for _ in range(12):
            await admitted(console, OFFICE, "wrong", asyncio.Protocol())
        assert late(console.slept) == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 10.0]

    asyncio.run(scenario())


def test_failures_of_all_have_a_pace_of_their_own() -> None:
    async def scenario() -> None:
        console = Console()
        for _ in range(throttle.TOTAL + 1):
            await admitted(console, LOOPBACK, "wrong", asyncio.Protocol())
        assert late(console.slept) == [throttle.TOTAL_PAUSE]

    asyncio.run(scenario())


def test_the_api_server_is_asked_about_few_tokens_at_once() -> None:
    async def scenario() -> None:
        console = Console()
        console.free.clear()
        office = [asyncio.create_task(admitted(console, OFFICE, "wrong", asyncio.Protocol())) for _ in range(30)]
        await asyncio.sleep(0.01)
        assert console.most == throttle.OF_ADDRESS
        others = [asyncio.create_task(admitted(console, LOOPBACK, "right", asyncio.Protocol())) for _ in range(30)]
        await asyncio.sleep(0.01)
        assert console.most == throttle.AT_ONCE
        console.free.set()
        assert await asyncio.gather(*others) == ["alice"] * 30
        assert await asyncio.gather(*office) == [""] * 30

    asyncio.run(scenario())


def test_a_client_that_leaves_has_its_turn_back_later() -> None:
    async def scenario() -> None:
        console = Console()
        console.free.clear()
        task = asyncio.create_task(admitted(console, LOOPBACK, "wrong", asyncio.Protocol()))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(0.01)
        assert throttle.HELD_SECONDS in console.slept

    asyncio.run(scenario())
