"""TensorBoards behind the second port: who gets there, what goes there, and what comes back."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiohttp import web
from yarl import URL

from console.config import Config
from console.console import Console
from tests.unit.console.consoles import Stand, run

BOARD = "/tensorboard/trainings/training"
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


def test_nothing_of_a_login_goes_there_and_no_cookie_comes_back(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.log_in("viewer")
        sent = {"Authorization": "Bearer mine", "X-Forwarded-For": "1.2.3.4", "Accept-Language": "de"}
        async with stand.browser.get(f"{stand.tensorboard}{BOARD}/data/runs?a=b%20c", headers=sent) as got:
            said = await got.json()
            assert got.status == 200
            assert said["path"] == f"{BOARD}/data/runs?a=b%20c"
            assert not {"Cookie", "Authorization", "X-Forwarded-For", "Origin", "Referer"} & said["headers"].keys()
            assert said["headers"]["Accept-Language"] == "de"
            assert not {"Set-Cookie", "Access-Control-Allow-Origin", "X-Evil", "Clear-Site-Data"} & got.headers.keys()
            assert got.headers["Content-Security-Policy"].startswith(
                "default-src 'self'; script-src 'self' 'unsafe-eval'"
            )
            assert "*" not in got.headers["Content-Security-Policy"]

    run(scenario, tmp_path, board=board)


@pytest.mark.parametrize("to", REDIRECTS)
def test_redirects_lead_nowhere_else(to: str, tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.log_in("viewer")
        url = f"{stand.tensorboard}{BOARD}/?to={to}"
        async with stand.browser.get(url, allow_redirects=False) as got:
            if to in ("own", "relative"):
                assert (got.status, got.headers["Location"].partition("?")[0]) == (302, f"{BOARD}/data/runs")
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
        for origin, status in ((stand.tensorboard, 200), (stand.url, 403), ("https://evil.example", 403)):
            async with stand.browser.post(url, data=b"x", headers={"Origin": origin}) as got:
                assert got.status == status
        async with stand.browser.put(url, data=b"x") as got:
            assert got.status == 405

    run(scenario, tmp_path, board=board)


def test_a_board_that_is_left_open_keeps_no_login_alive(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        async def status(**headers: str) -> int:
            url = f"{stand.tensorboard}{BOARD}/"
            async with stand.browser.get(url, headers=headers, allow_redirects=False) as got:
                return got.status

        await stand.log_in("viewer")
        stand.clock.ahead += 1700
        assert await status(**{"Sec-Fetch-Mode": "navigate"}) == 200
        stand.clock.ahead += 1700
        assert await status(**{"Sec-Fetch-Mode": "cors"}) == 200
        stand.clock.ahead += 200
        assert await status(**{"Sec-Fetch-Mode": "navigate"}) == 303

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
        for path in TRICKS:
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


PORTS = {
    ("console_origin", "site:30444"): "https://site:30443",
    ("console_origin", "localhost:8444"): "https://localhost:8443",
    ("tensorboard_origin", "site:30443"): "https://site:30444",
    ("tensorboard_origin", "localhost:8443"): "https://localhost:8444",
    ("tensorboard_origin", "[::1]:30443"): "https://[::1]:30444",
    ("tensorboard_origin", "site"): "https://site:30444",
}


@pytest.mark.parametrize(("which", "host"), PORTS)
def test_the_other_port_is_found_by_node_port_and_by_port_forward(which: str, host: str, tmp_path: Path) -> None:
    config = Config("https://a", tmp_path, tmp_path, public_port=30443, public_tensorboard_port=30444)
    console = Console(config, None, None)  # type: ignore[arg-type]
    assert getattr(console, which)(host) == PORTS[which, host]
