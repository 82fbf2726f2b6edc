"""TensorBoards behind the second port: who gets there, what goes there, and what comes back."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiohttp import web
from yarl import URL

from tests.unit.console.consoles import Stand, run

BOARD = "/tensorboard/trainings/training"
FRAME = {"Sec-Fetch-Dest": "empty", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Site": "cross-site", "Origin": "null"}
"""As a browser sends what a page without an origin asks for: no cookie comes with it."""
REDIRECTS = {
    "elsewhere": "https://evil.example/",
    "scheme": "//evil.example/x",
    "above": "/tensorboard/trainings/../../x",
    "other": "/tensorboard/others/training/",
    "encoded": f"{BOARD}/%2e%2e/%2e%2e/other/",
    "own": f"{BOARD}/data/runs?x=1",
    "relative": "data/runs",
}


async def board(request: web.Request) -> web.StreamResponse:
    """A TensorBoard that does what a hostile one would."""
    if request.query.get("to"):
        raise web.HTTPFound(REDIRECTS[request.query["to"]])
    said = {
        "Set-Cookie": "__Host-console=stolen; Path=/",
        "Access-Control-Allow-Origin": "*",
        "Content-Security-Policy": "default-src *",
        "X-Evil": "1",
        "Clear-Site-Data": "*",
    }
    seen = dict(request.headers.items())
    return web.json_response({"path": request.raw_path, "headers": seen, "body": await request.text()}, headers=said)


async def enter(stand: Stand, path: str = "/") -> str:
    """Where a visit begins that the console has sent on."""
    async with stand.browser.get(f"{stand.tensorboard}{BOARD}{path}", allow_redirects=False) as got:
        assert got.status == 303, await got.text()
        return f"{stand.tensorboard}{got.headers['Location']}"


def test_nothing_of_a_login_goes_there_and_no_cookie_comes_back(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.log_in("viewer")
        sent = {"Authorization": "Bearer mine", "X-Forwarded-For": "1.2.3.4", "Accept-Language": "de"}
        async with stand.browser.get(await enter(stand, "/data/runs?a=b%20c"), headers=sent) as got:
            said = await got.json()
            assert got.status == 200
            assert said["path"] == f"{BOARD}/data/runs?a=b%20c"
            assert not {"Cookie", "Authorization", "X-Forwarded-For", "Origin", "Referer"} & said["headers"].keys()
            assert said["headers"]["Accept-Language"] == "de"
            assert not {"Set-Cookie", "Access-Control-Allow-Origin", "X-Evil", "Clear-Site-Data"} & got.headers.keys()
            policy = got.headers["Content-Security-Policy"]
            assert policy.startswith("sandbox allow-scripts allow-downloads; default-src 'self'; script-src 'self'")
            assert "*" not in policy and "allow-same-origin" not in policy

    run(scenario, tmp_path, board=board)


@pytest.mark.parametrize("to", REDIRECTS)
def test_redirects_lead_nowhere_else(to: str, tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.log_in("viewer")
        place = await enter(stand)
        async with stand.browser.get(f"{place}?to={to}", allow_redirects=False) as got:
            if to in ("own", "relative"):
                where = f"{stand.tensorboard}{got.headers['Location'].partition('?')[0]}"
                assert (got.status, where) == (302, f"{place}data/runs")
            else:
                assert got.status == 502
                assert "Location" not in got.headers

    run(scenario, tmp_path, board=board)


def test_who_gets_there(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        url = f"{stand.tensorboard}{BOARD}/"
        async with stand.browser.get(url, allow_redirects=False) as got:
            assert (got.status, got.headers["Location"]) == (
                303,
                f"{stand.console.console_origin('127.0.0.1:1')}/login",
            )
        for token, status in (("viewer", 200), ("operator", 200), ("stranger", 403)):
            await stand.log_in(token)
            async with stand.browser.get(url) as got:
                assert got.status == status
        await stand.log_in("viewer")
        # Only a person who opens a page gets a pass, and only its own page may send something.
        for headers in (FRAME, {"Sec-Fetch-Dest": "iframe"}, {"Sec-Fetch-Dest": "script"}):
            async with stand.browser.get(url, headers=headers, allow_redirects=False) as got:
                assert got.status == 403
        place = await enter(stand)
        for where, origin, status in (
            (place, "null", 200),
            (place, stand.tensorboard, 403),
            (place, "https://evil.example", 403),
            (url, "null", 403),
        ):
            async with stand.browser.post(where, data=b"x", headers={"Origin": origin}) as got:
                assert got.status == status
        async with stand.browser.put(place, data=b"x") as got:
            assert got.status == 405

    run(scenario, tmp_path, board=board)


def test_a_board_that_is_left_open_keeps_no_login_alive(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.log_in("viewer")
        place = await enter(stand)

        async def status(url: str, **headers: str) -> int:
            async with stand.browser.get(url, headers=headers, allow_redirects=False) as got:
                return got.status

        stand.clock.ahead += 1700
        assert await status(place) == 200
        stand.clock.ahead += 1700
        assert await status(place, **FRAME) == 200
        stand.clock.ahead += 200
        assert await status(place, **FRAME) == 403
        assert (await status(place), await status(f"{stand.tensorboard}{BOARD}/")) == (200, 303), "led to the login"

    run(scenario, tmp_path, board=board)


TRICKS = (
    "/tensorboard/trainings/training/../../../api/v1/runs",
    "/tensorboard/trainings/training/%2e%2e/x",
    "/tensorboard/trainings/training/..%2fx",
    "/tensorboard/trainings/training/a%2fb",
    "/tensorboard/trainings/training//evil.example/",
    "/tensorboard/trainings/training/%5c..%5cx",
    "/tensorboard/trainings/training/%252e%252e/",
    "/tensorboard/trainings/training/a%00b",
    "/tensorboard/trainings/training.evil.example:80/",
    "/tensorboard/trainings/training%2f..%2fx/",
    "/tensorboard/Trainings/training/",
    "/tensorboard/trainings/a@evil.example/",
    "/tensorboard/trainings/",
    "/",
    "/api/v1/runs",
)


def test_tricks_with_paths(tmp_path: Path) -> None:
    reached = []

    async def counting(request: web.Request) -> web.StreamResponse:
        reached.append(request.raw_path)
        return await board(request)

    async def scenario(stand: Stand) -> None:
        await stand.log_in("viewer")
        key = (await enter(stand)).split("/")[4]
        passes = [
            path.replace("/tensorboard/", f"/pass/{key}/", 1) for path in TRICKS if path.startswith("/tensorboard/")
        ]
        for path in (*TRICKS, *passes, f"/pass/{key}", "/pass/x/trainings/training/"):
            async with stand.browser.get(URL(f"{stand.tensorboard}{path}", encoded=True), allow_redirects=False) as got:
                assert got.status in (400, 404), path
        assert reached == []

    run(scenario, tmp_path, board=counting)


def test_a_board_that_is_away_is_said_to_be(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.log_in("viewer")
        async with stand.browser.get(f"{stand.tensorboard}{BOARD}/") as got:
            assert got.status == 502
            assert "does not answer" in await got.text()

    async def gone(request: web.Request) -> web.StreamResponse:
        assert request.transport
        request.transport.abort()
        return web.Response()

    run(scenario, tmp_path, board=gone)
