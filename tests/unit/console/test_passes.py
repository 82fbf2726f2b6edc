"""Each TensorBoard without an origin, with a path of its own for one login and one claim, and from our pods alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.unit.console.consoles import RUN, SPACE, USERS, Stand, objects, run
from tests.unit.console.fake import FakeApi
from tests.unit.console.test_attempts import good
from tests.unit.console.test_tensorboard import BOARD, FRAME, board, enter
from trainyard.console.opaque import SCRIPT, with_script
from trainyard.console.sessions import Sessions
from trainyard.console.tensorboard_proxy import OF_SESSION, PASS_SECONDS, Passes

REPLICAS = "/apis/apps/v1/namespaces/trainings/replicasets/tensorboard-training-5d"


async def answers(stand: Stand, url: str, **headers: str) -> tuple[int, dict[str, str]]:
    """Status and headers for a browser that has no login."""
    async with stand.another() as other, other.browser.get(url, headers=headers, allow_redirects=False) as got:
        return got.status, dict(got.headers)


def test_a_pass_is_for_one_claim(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.log_in("viewer")
        place = await enter(stand)
        assert (await answers(stand, f"{place}data/runs", **FRAME))[0] == 200
        for other in (place.replace("/training/", "/datasets/"), place.replace("/trainings/", "/others/")):
            assert (await answers(stand, f"{other}data/runs", **FRAME))[0] == 403
        assert await enter(stand) == place, "a second visit has the same pass"

    run(scenario, tmp_path, board=board)


def test_a_page_is_only_for_the_login_that_has_the_pass(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.log_in("viewer")
        place = await enter(stand)
        # Loaded again, it comes without the cookie: a page with an origin leads back to where a visit begins.
        async with stand.another() as other, other.browser.get(f'{place}?a="><script>') as got:
            text = await got.text()
            assert got.status == 200 and f'content="0;url={BOARD}/?a=' in text and "<script" not in text
            assert got.headers["Content-Security-Policy"].startswith("default-src 'none'")
        async with stand.another() as other:
            await other.log_in("operator")
            assert await enter(other) != place
            async with other.browser.get(place, allow_redirects=False) as got:
                assert (got.status, got.headers["Location"]) == (303, f"{BOARD}/")

    run(scenario, tmp_path, board=board)


def test_a_pass_ends_with_its_login(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        csrf = await stand.log_in("viewer")
        place = await enter(stand)
        assert (await stand.post("/logout", csrf))[0] == 303
        assert (await answers(stand, f"{place}data/runs", **FRAME))[0] == 403

    run(scenario, tmp_path, board=board)


def test_only_a_page_without_an_origin_may_read_and_only_with_a_pass(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.log_in("viewer")
        place = await enter(stand)
        for url, origin, shown in (
            (place, "null", "null"),
            (place, "https://evil.example", None),
            (place.replace("/pass/", "/pass/x"), "null", None),
            (f"{stand.tensorboard}{BOARD}/", "null", None),
        ):
            _, headers = await answers(stand, url, **{**FRAME, "Origin": origin})
            assert headers.get("Access-Control-Allow-Origin") == shown, url
            wanted = "cross-origin" if url == place else "same-origin"
            assert headers["Cross-Origin-Resource-Policy"] == wanted
        sent = {**FRAME, "Access-Control-Request-Headers": "content-type,x-tensorboard-feature-flags"}
        async with stand.browser.options(f"{place}data/runs", headers=sent) as got:
            assert got.status == 204
            assert got.headers["Access-Control-Allow-Headers"] == "content-type,x-tensorboard-feature-flags"
        sent["Access-Control-Request-Headers"] = "authorization"
        async with stand.browser.options(f"{place}data/runs", headers=sent) as got:
            assert "Access-Control-Allow-Headers" not in got.headers

    run(scenario, tmp_path, board=board)


def test_pages_get_the_script_and_nothing_else_does(tmp_path: Path) -> None:
    async def page(request: web.Request) -> web.Response:
        assert request.headers["Accept-Encoding"] == "identity"
        kind = "text/html" if request.path.endswith("/") else "text/javascript"
        return web.Response(text="<!doctype html><HEAD x='y'><title>a</title>", content_type=kind)

    async def scenario(stand: Stand) -> None:
        await stand.log_in("viewer")
        place = await enter(stand)
        async with stand.browser.get(place) as got:
            text = await got.text()
            assert text == f"<!doctype html><HEAD x='y'>{SCRIPT.decode()}<title>a</title>"
        async with stand.browser.get(f"{place}a.js") as got:
            assert (await got.text()).startswith("<!doctype html><HEAD x='y'><title>")

    run(scenario, tmp_path, board=page)


@pytest.mark.parametrize(
    ("chunks", "script"),
    [([b"<he", b"ad><header>", b"x"], True), ([b"<header>x"], False), ([b"x" * 70_000, b"<head>"], False), ([], False)],
)
def test_where_a_head_begins(chunks: list[bytes], script: bool) -> None:
    async def source() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    async def all_of() -> bytes:
        return b"".join([chunk async for chunk in with_script(source())])

    said, whole = asyncio.run(all_of()), b"".join(chunks)
    assert said == (whole.replace(b"<head>", b"<head>" + SCRIPT) if script else whole)


def test_passes_are_few_and_end() -> None:
    sessions, passes = Sessions(), Passes()
    session, other = sessions.begin("a", "alice"), sessions.begin("b", "bob")
    assert session and other
    kept = passes.give(other, "n", "c", 0)
    given = [passes.give(session, "n", f"c{number}", number) for number in range(3 * OF_SESSION)]
    assert len(passes) == OF_SESSION + 1
    assert passes.find(given[0].key, "n", "c0", 60) is None
    assert passes.find(given[-1].key, "n", given[-1].claim, 60) is given[-1]
    assert passes.find(kept.key, "n", "c", PASS_SECONDS) is None
    sessions.end(session)
    assert passes.find(given[-1].key, "n", given[-1].claim, 60) is None
    passes.give(other, "n", "d", PASS_SECONDS + 60)
    assert len(passes) == 1


def pod(**owner: Any) -> dict[str, Any]:
    labels = {"trainyard.dev/tensorboard": "training"}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "tensorboard-training-5d", "uid": "r", **owner}
    meta = {"name": "tensorboard-training-5d-abcde", "namespace": "trainings", "labels": labels}
    return {"metadata": {**meta, "ownerReferences": [{"controller": True, **owner}]}}


def replicas(deployment: str = "tensorboard-training", uid: str = "r") -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment, "controller": True}
    return {"metadata": {"name": "tensorboard-training-5d", "uid": uid, "ownerReferences": [owner]}}


@pytest.mark.parametrize(
    ("found", "made_by", "status"),
    [
        (pod(), replicas(), 303),
        (pod(), replicas("other"), 403),
        (pod(), replicas(uid="another"), 403),
        (pod(), None, 403),
        (pod(kind="Job", apiVersion="batch/v1"), replicas(), 403),
        (pod(apiVersion="apps/v2"), replicas(), 403),
        (pod(controller=False), replicas(), 403),
        (pod(name="../replicasets/tensorboard-training-5d"), replicas(), 403),
        ({"metadata": {"name": "bare", "labels": pod()["metadata"]["labels"]}}, replicas(), 403),
        ({"metadata": {"name": "odd", "labels": pod()["metadata"]["labels"], "ownerReferences": 3}}, replicas(), 403),
    ],
)
def test_only_pods_of_the_deployment_are_shown(tmp_path: Path, found: Any, made_by: Any, status: int) -> None:
    there = {**objects(), f"{SPACE}/pods/of-the-board": found, **({REPLICAS: made_by} if made_by else {})}

    async def scenario(stand: Stand) -> None:
        await stand.log_in("viewer")
        async with stand.browser.get(f"{stand.tensorboard}{BOARD}/", allow_redirects=False) as got:
            assert got.status == status, await got.text()
            curves = (await stand.get(f"{RUN}/attempts"))[1]
            assert ('"loss"' in curves) is (status == 303)
            if status == 403:
                assert "is not of its Deployment" in await got.text()

    run(scenario, tmp_path, board=good, api=FakeApi(there, USERS))
