"""Curves of the attempts at a run, from the JSON of its TensorBoard, which may say anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.unit.console.consoles import CHIEF, LIVE, RECORD, RUN, Stand, run
from trainyard.console.tensorboard_proxy import TensorBoards

FIRST = "20261121T120000Z-0001"

RUNS = [
    "mnist/attempts/20261121T120000Z-0001/train",
    "mnist/attempts/20261121T120000Z-0001/eval",
    "mnist/attempts/zero/train",
    "other/attempts/a/train",
]
POINTS = [[1.0, 20, 2.5], [2.0, 40, 1.5]]
ODD = '[[1.0, 20, NaN], ["x", 1, 2], [1, 2], [1.0, 40, 3.0]]'


async def good(request: web.Request) -> web.Response:
    assert "Cookie" not in request.headers and "Authorization" not in request.headers
    if request.path == "/tensorboard/trainings/training/data/runs":
        return web.json_response(RUNS)
    assert request.path == "/tensorboard/trainings/training/data/plugin/scalars/scalars"
    wanted = request.query["run"], request.query["tag"]
    if wanted == ("mnist/attempts/zero/train", "steps_per_second"):
        return web.Response(status=404)
    return web.Response(text=ODD if request.query["tag"] == "accuracy" else json.dumps(POINTS))


async def hostile(request: web.Request) -> web.Response:
    if request.path.endswith("/runs"):
        return web.Response(status=302, headers={"Location": "http://127.0.0.1:1/", "Set-Cookie": "a=b"})
    return web.Response(text="[" * 100_000)


async def large(request: web.Request) -> web.Response:
    return web.Response(text="[" + " " * 3_000_000 + "]")


def test_attempts_with_their_curves(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.log_in("viewer")
        status, text = await stand.get(f"{RUN}/attempts")
        curve = [[20, 2.5], [40, 1.5]]
        assert status == 200 and json.loads(text)["attempts"] == [
            {
                "name": FIRST,
                "curves": {"loss": curve, "steps_per_second": curve, "accuracy": [[40, 3.0]]},
            },
            {"name": "zero", "curves": {"loss": curve, "steps_per_second": []}},
        ]

    run(scenario, tmp_path, board=good)


@pytest.mark.parametrize("board", [hostile, large])
def test_a_tensorboard_that_answers_something_else_has_no_attempts(board: Any, tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.log_in("viewer")
        assert await stand.get(f"{RUN}/attempts") == (200, '{"attempts": []}')

    run(scenario, tmp_path, board=board)


@pytest.mark.parametrize("claim", ["victim.others.svc:6006/../..", "victim.others", "a@evil.example", "../x", "A"])
def test_a_forged_record_leads_to_no_other_host(claim: str, tmp_path: Path) -> None:
    reached = []

    async def counting(request: web.Request) -> web.Response:
        reached.append(request.raw_path)
        return await good(request)

    async def scenario(stand: Stand) -> None:
        del stand.api.objects[LIVE], stand.api.objects[CHIEF]
        data = stand.api.objects[RECORD]["data"]
        data["result.json"] = json.dumps({**json.loads(data["result.json"]), "files": {"claim": claim}})
        await stand.log_in("viewer")
        assert await stand.get(f"{RUN}/attempts") == (200, '{"attempts": []}')
        assert reached == []
        boards = TensorBoards(lambda namespace, claim: pytest.fail(f"{claim} is asked"))
        assert await boards.ask("trainings", claim, "data/runs", {}) is None

    run(scenario, tmp_path, board=counting)


@pytest.mark.parametrize(("token", "expected"), [("", 401), ("stranger", 403)])
def test_attempts_are_for_those_who_may_see_the_run(token: str, expected: int, tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        if token:
            await stand.log_in(token)
        assert (await stand.get(f"{RUN}/attempts"))[0] == expected

    run(scenario, tmp_path, board=good)
