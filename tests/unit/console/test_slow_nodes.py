"""Nodes that do not answer for the logs of their pods, while the API server does."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.unit.console.consoles import CHIEF, LIVE, LOG, RECORD, USERS, Events, Stand, objects, run
from tests.unit.console.fake import FakeApi
from tests.unit.console.watching import step, until, watching
from trainyard.console import feed as feeds
from trainyard.console import user_api as calls


class SlowNode(FakeApi):
    """Logs that are asked for never come; those that are followed have a status."""

    def __init__(self, there: Mapping[str, Any]) -> None:
        super().__init__(there, USERS)
        self.asked_logs = 0
        self.status = 200

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/log") and "follow" not in request.query:
            self.asked_logs += 1
            await asyncio.Event().wait()
        if request.path.endswith("/log") and self.status != 200:
            return web.json_response({"message": "its node says so"}, status=self.status)
        return await super().handle(request)


def test_a_page_stays_live_while_the_log_of_its_pod_does_not_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "LOG_SECONDS", 0.2)

    async def scenario(stand: Stand) -> None:
        await stand.log_in("viewer")
        async with watching(stand) as answer:
            assert (await Events(answer).next("run"))[2]["run"] == "mnist"

    run(scenario, tmp_path, api=SlowNode(objects()))


def test_logs_that_do_not_come_keep_nothing_else_waiting(tmp_path: Path) -> None:
    api = SlowNode(objects())

    async def scenario(stand: Stand) -> None:
        client = stand.console.client
        logs = [asyncio.create_task(client.call("viewer", "GET", LOG)) for _ in range(2 * calls.AT_ONCE)]
        await until(lambda: api.asked_logs == calls.LOGS_AT_ONCE)
        assert (await client.call("viewer", "GET", CHIEF))[0] == 200
        assert not any(each.done() for each in logs)
        for each in logs:
            each.cancel()

    run(scenario, tmp_path, api=api)


def test_whether_the_api_server_is_there_is_asked_out_of_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "PULSE_SECONDS", 0.2)

    async def scenario(stand: Stand) -> None:
        await stand.log_in("viewer")
        async with watching(stand) as answer:
            await Events(answer).next("run")
            for _ in range(calls.AT_ONCE):
                await stand.console.client._turns.acquire()
            stand.api.asked.clear()
            await until(lambda: ("viewer", "GET", "/version") in stand.api.asked)
            for _ in range(calls.AT_ONCE):
                stand.console.client._turns.release()

    run(scenario, tmp_path)


@pytest.mark.parametrize("then", ["another status", "no pod"])
def test_a_log_that_nobody_needs_any_more_is_no_notice(then: str, tmp_path: Path) -> None:
    api = SlowNode(objects())
    api.status = 500

    async def scenario(stand: Stand) -> None:
        await stand.log_in("viewer")
        async with watching(stand) as answer:
            mine = Events(answer)
            assert "cannot be read" in (await mine.next("notice"))[2]["text"]
            if then == "no pod":
                api.change("DELETED", CHIEF, api.objects[CHIEF])
            else:
                api.status = 404
            assert (await mine.next("notice"))[2]["text"] == ""

    run(scenario, tmp_path, api=api)


def test_a_run_that_was_deleted_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "VIEW_PAUSE", 0.05)

    async def scenario(stand: Stand) -> None:
        stand.api.set_log(LOG, step(1))
        await stand.log_in("viewer")
        async with watching(stand) as answer:
            mine = Events(answer)
            await mine.next("run")
            there = {path: stand.api.objects[path] for path in (RECORD, LIVE, CHIEF)}
            # What was answered a moment ago is answered again.
            stand.clock.ahead += 2
            for path, each in there.items():
                stand.api.change("DELETED", path, each)
            assert (await mine.next("notice"))[2]["text"].startswith("The run no longer exists")
            # Somebody submits it anew.
            stand.clock.ahead += 2
            for path, each in there.items():
                stand.api.change("ADDED", path, each)
            assert (await mine.next("notice"))[2]["text"] == ""

    run(scenario, tmp_path)
