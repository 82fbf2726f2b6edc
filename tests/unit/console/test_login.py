"""Logging in, the cookie, the end of logins, and what every answer says to browsers."""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path

import pytest

from tests.unit.console.consoles import RUN, USERS, Stand, run
from tests.unit.console.watching import watching

GUESSES = ("wrong", "", "viewer\r\nX-Evil: 1", "viewe", "ö", "a b")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)


def test_a_token_opens_a_session_and_nothing_else_does(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        for token in GUESSES:
            stand.clock.ahead += 100
            async with stand.browser.post(
                f"{stand.url}/login", data={"token": token}, headers=stand.origin, allow_redirects=False
            ) as got:
                assert got.status == 401, token
                assert "Set-Cookie" not in got.headers
        stand.clock.ahead += 100
        async with stand.browser.post(
            f"{stand.url}/login", data={"token": "viewer"}, headers=stand.origin, allow_redirects=False
        ) as got:
            cookie = got.headers["Set-Cookie"]
            assert cookie.startswith("__Host-console=")
            assert {"HttpOnly", "Secure", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
            assert "viewer" not in cookie
        await stand.log_in("viewer")
        status, text = await stand.get("/")
        assert (status, "alice" in text, "mnist" in text) == (200, True, True)

    run(scenario, tmp_path)


def test_a_login_leads_to_where_somebody_wanted_to_go_on_this_origin_alone(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        for wanted, got in (
            ("/nodes", "/nodes"),
            ("//evil.example", "/"),
            ("https://evil.example", "/"),
            ("/\\e", "/"),
        ):
            form = {"token": "viewer", "next": wanted}
            async with stand.browser.post(
                f"{stand.url}/login", data=form, headers=stand.origin, allow_redirects=False
            ) as answer:
                assert answer.headers["Location"] == got

    run(scenario, tmp_path)


def test_a_login_from_another_origin_is_refused(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        for origin in ({"Origin": "https://evil.example"}, {"Origin": stand.tensorboard}, {"Origin": "null"}, {}):
            async with stand.browser.post(
                f"{stand.url}/login", data={"token": "viewer"}, headers=origin, allow_redirects=False
            ) as got:
                assert got.status == 403
        assert not stand.api.asked

    run(scenario, tmp_path)


def test_a_session_id_from_outside_is_never_taken(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        stand.browser.headers["Cookie"] = "__Host-console=chosen"
        assert (await stand.get("/api/v1/runs"))[0] == 401
        await stand.log_in("viewer")
        assert stand.browser.headers["Cookie"] != "__Host-console=chosen"
        assert stand.console.sessions.find("chosen") is None

    run(scenario, tmp_path)


def test_a_right_token_is_taken_whatever_others_of_its_address_have_tried(tmp_path: Path) -> None:
    """By a port-forward everybody has the address of loopback."""

    async def scenario(stand: Stand) -> None:
        found = []
        for token in ["wrong"] * 12 + ["viewer"]:
            async with stand.browser.post(
                f"{stand.url}/login", data={"token": token}, headers=stand.origin, allow_redirects=False
            ) as got:
                found.append(got.status)
        assert found == [401] * 12 + [303]

    run(scenario, tmp_path)


def test_a_login_ends_when_nobody_uses_it_and_when_its_user_says_so(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.log_in("viewer")
        stand.clock.ahead += 1700
        assert (await stand.get("/api/v1/session"))[0] == 200
        stand.clock.ahead += 1700
        assert (await stand.get("/api/v1/session"))[0] == 200
        # Nor is one about events a stream of them.
        stand.clock.ahead += 1000
        assert (await stand.get("/cluster/core/v1/events"))[0] == 200
        # What a page that is left open asks for is no use of it.
        stand.clock.ahead += 1000
        assert (await stand.get("/", **{"X-Console-Refresh": "1"}))[0] == 200
        async with watching(stand) as answer:
            assert answer.status == 200
        stand.clock.ahead += 800
        assert (await stand.get("/api/v1/session"))[0] == 401
        csrf = await stand.log_in("viewer")
        status, _ = await stand.post("/logout", csrf)
        assert status == 303
        assert (await stand.get("/api/v1/session"))[0] == 401
        assert len(stand.console.sessions) == 0

    run(scenario, tmp_path)


def test_a_link_from_another_site_takes_no_login_away(tmp_path: Path) -> None:
    """Its request has no cookie (SameSite=Strict), which says nothing about the one that the browser keeps."""

    async def scenario(stand: Stand) -> None:
        for sent, deleted in (({}, False), ({"Cookie": "__Host-console=gone"}, True)):
            async with stand.browser.get(f"{stand.url}/nodes", headers=sent) as got:
                assert (got.status, "Set-Cookie" in got.headers) == (401, deleted)

    run(scenario, tmp_path)


def test_a_token_that_was_revoked_ends_its_login(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.log_in("viewer")
        assert (await stand.get("/api/v1/runs"))[0] == 200
        stand.clock.ahead += 5
        del stand.api.users["viewer"]
        assert (await stand.get("/api/v1/runs"))[0] == 401
        assert len(stand.console.sessions) == 0
        stand.api.users["viewer"] = USERS["viewer"]
        assert (await stand.get("/api/v1/runs"))[0] == 401

    run(scenario, tmp_path)


def test_every_answer_has_the_policy(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.log_in("viewer")
        paths = ("/", "/nothing", "/login", "/healthz", "/static/style.css", "/static/../console.py", f"{RUN}/events")
        for path in (*paths, "/api/v1/runs", "/api/v1/runs/trainings/none", "/runs/%00/%ff"):
            async with stand.browser.get(f"{stand.url}{path}", allow_redirects=False) as got:
                assert got.headers["Content-Security-Policy"] == POLICY, path
                assert got.headers["X-Content-Type-Options"] == "nosniff"
                assert got.headers["Server"] == "console"
                assert "Access-Control-Allow-Origin" not in got.headers

    run(scenario, tmp_path)


def test_what_is_no_request_gets_an_answer_with_the_policy(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        trusted = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
        port = int(stand.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusted)
        writer.write(b"GET /<script> HTTP/9\x01\r\n\r\n")
        answer = await reader.read()
        assert answer.startswith((b"HTTP/1.0 400", b"HTTP/1.1 400"))
        assert POLICY.encode() in answer
        assert b"Content-Type: text/plain" in answer
        writer.close()

    run(scenario, tmp_path)


def test_no_log_line_has_a_token(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    canary = "canary-0f9a"

    async def scenario(stand: Stand) -> None:
        stand.api.users[canary] = USERS["operator"]
        csrf = await stand.log_in(canary)
        await stand.get("/")
        await stand.post(f"{RUN}/continue", csrf)
        stand.api.down = True
        stand.clock.ahead += 5
        await stand.get("/")
        assert canary not in repr(stand.console.sessions) + repr(list(stand.console.sessions._known.values()))

    with caplog.at_level(logging.DEBUG):
        run(scenario, tmp_path)
    assert canary not in caplog.text
