"""Every route, and what each kind of user gets there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.unit.console.consoles import CHIEF, LOG, RUN, SPACE, Stand, objects, run
from tests.unit.console.fake import FakeApi, User
from trainyard.console.tensorboard_proxy import TensorBoards
from trainyard.console.views.page_table import PAGES
from trainyard.console.web_server import pages_app
from trainyard.kube.api import KubeError

USERS = {
    "": None,
    "viewer": User("alice"),
    "operator": User("olga", operates=True),
    "stranger": User("bob", namespaces=("others",)),
}
POD = CHIEF.rpartition("/")[2]
RECEIPT = {
    "metadata": {
        "name": "receipt-20261121T120000Z",
        "namespace": "trainyard-console",
        "labels": {"trainyard.dev/receipt": "passed"},
    },
    "data": {"receipt.json": '{"result": "pass", "checks": []}'},
}
SETS = "/cluster/jobset.x-k8s.io/v1alpha2/jobsets"

# method, path -> status without a login, of a viewer, of an operator, of a viewer of another namespace
ROUTES = {
    ("GET", "/healthz"): (200, 200, 200, 200),
    ("GET", "/login"): (200, 303, 303, 303),
    ("GET", "/static/style.css"): (200, 200, 200, 200),
    ("GET", "/"): (401, 200, 200, 403),
    ("GET", "/runs/trainings/mnist"): (401, 200, 200, 403),
    ("GET", "/runs/trainings/none"): (401, 404, 404, 403),
    ("GET", "/nodes"): (401, 200, 200, 403),
    ("GET", "/receipts"): (401, 200, 200, 403),
    ("GET", "/receipts/receipt-20261121T120000Z"): (401, 200, 200, 403),
    ("GET", "/about"): (401, 200, 200, 200),
    ("GET", "/api/v1/session"): (401, 200, 200, 200),
    ("GET", f"{RUN}/attempts"): (401, 200, 200, 403),
    ("GET", f"{RUN}/logs/{POD}"): (401, 200, 200, 403),
    ("GET", f"{RUN}/logs/{POD}/events"): (401, 200, 200, 403),
    ("GET", f"{RUN}/events"): (401, 200, 200, 403),
    ("POST", f"{RUN}/stop"): (401, 403, 200, 403),
    ("POST", f"{RUN}/continue"): (401, 403, 409, 403),
    ("POST", f"{RUN}/restart"): (401, 403, 200, 403),
    ("POST", f"{RUN}/delete"): (401, 403, 409, 403),
    ("POST", "/login"): (401, 401, 401, 401),
    ("POST", "/logout"): (401, 303, 303, 303),
}


def cluster() -> FakeApi:
    there = {**objects(), "/api/v1/namespaces/trainyard-console/configmaps/receipt-20261121T120000Z": RECEIPT}
    api = FakeApi(there, {token: user for token, user in USERS.items() if user})
    api.set_log(LOG, "a line")
    return api


@pytest.mark.parametrize("number", range(len(USERS)), ids=lambda number: list(USERS)[number] or "nobody")
def test_every_route_by_who_asks(number: int, tmp_path: Path) -> None:
    token = list(USERS)[number]

    async def scenario(stand: Stand) -> None:
        for (method, path), expected in ROUTES.items():
            stand.browser.headers.pop("Cookie", None)
            stand.clock.ahead += 100
            csrf = await stand.log_in(token) if token else ""
            stand.api.objects = cluster().objects
            headers = {**stand.origin, "X-Console-Session": csrf}
            async with stand.browser.request(
                method, f"{stand.url}{path}", headers=headers, allow_redirects=False
            ) as got:
                assert got.status == expected[number], (method, path, await got.text())
        if token:
            stand.clock.ahead += 100
            await stand.log_in(token)
        for path in API:
            status, text = await stand.get(path)
            assert status == ROUTES["GET", API[path]][number], (path, text)
            assert text.startswith("{")

    run(scenario, tmp_path, api=cluster())


API = {page.json_path: page.path for page in PAGES if "{" not in page.path and ("GET", page.path) in ROUTES}


def test_the_table_has_every_route(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        tried = {*ROUTES, *(("GET", path) for path in API), *(("GET", f"/api/v1{path}") for _, path in ROUTES)}
        for route in pages_app(stand.console, PAGES, TensorBoards()).router.routes():
            assert route.resource
            path = route.resource.canonical
            if route.method == "HEAD" or path.startswith(("/static", "/cluster", "/api/v1/cluster")):
                continue  # The cluster's pages have a table of their own.
            pattern = re.sub(r"\{[^}]*\}", "[^/]+", path)
            assert any(route.method == method and re.fullmatch(pattern, each) for method, each in tried), path

    run(scenario, tmp_path)


def test_a_request_that_changes_something_needs_the_sessions_own_value_and_origin(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        csrf = await stand.log_in("operator")
        forged: list[dict[str, str]] = [
            {"X-Console-Session": csrf},
            {"X-Console-Session": csrf, "Origin": "https://evil.example"},
            {"X-Console-Session": csrf, "Origin": stand.tensorboard},
            {"X-Console-Session": csrf, "Origin": "null"},
            {"X-Console-Session": "", **stand.origin},
            {"X-Console-Session": csrf[:-1] + ("a" if csrf[-1] != "a" else "b"), **stand.origin},
            {"X-Console-Session": csrf, **stand.origin, "Sec-Fetch-Site": "same-site"},
        ]
        for headers in forged:
            for path in (f"{RUN}/stop", f"{RUN}/restart", "/logout"):
                async with stand.browser.post(f"{stand.url}{path}", headers=headers) as got:
                    assert got.status == 403, (path, headers)
        assert stand.api.writes == []
        assert (await stand.get("/api/v1/session"))[0] == 200
        # A page of TensorBoard, whose requests bring the cookie, must not read this one either.
        assert (await stand.get("/api/v1/runs", **{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"}))[0] == 403
        assert (await stand.get("/", **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}))[0] == 200

    run(scenario, tmp_path)


def test_no_page_reads_a_secret(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.log_in("viewer")
        stand.api.objects[f"{SPACE}/secrets/x"] = {"metadata": {"name": "x"}, "data": {"a": "b"}}
        for path in ("/api/v1/cluster/core/v1/secrets", "/api/v1/cluster/core/v1/secrets/trainings/x"):
            assert (await stand.get(path))[0] in (403, 404), path

    run(scenario, tmp_path)


def test_a_page_of_what_was_kept_is_marked_so_that_its_script_can_take_the_notice_back(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.log_in("viewer")
        found = {}
        for stand.api.down in (False, True):
            stand.clock.ahead += 5
            _, found[stand.api.down] = await stand.get("/runs/trainings/mnist")
        assert ["data-kept" in found[down] for down in found] == [False, True]
        assert "This page is" in found[True]

    run(scenario, tmp_path)


def test_the_rest_of_a_long_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.log_in("viewer")
        pods = "/cluster/core/v1/pods"
        for query, expected in (
            (f"continue={'x' * 1_500}", 200),
            (f"continue={'x' * 2_001}", 400),
            (f"namespace={'x' * 201}", 400),
            (f"{'x' * 2_000}={'x' * 2_000}", 200),
        ):
            assert (await stand.get(f"{pods}?{query}"))[0] == expected, query[:20]

        async def get(*_: Any, **__: Any) -> Any:
            raise KubeError("The provided continue parameter is too old", status=410)

        monkeypatch.setattr(stand.console.client, "get", get)
        status, text = await stand.get(f"{pods}?continue=x")
        assert (status, "Start with the first page" in text) == (410, True)

    run(scenario, tmp_path)


def test_an_answer_that_does_not_come_is_no_empty_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.log_in("viewer")
        asked = stand.console.client.get

        async def get(token: str, path: str, *rest: Any, **named: Any) -> Any:
            if path == "/api/v1/namespaces":
                raise KubeError("etcdserver: request timed out", status=504)
            return await asked(token, path, *rest, **named)

        monkeypatch.setattr(stand.console.client, "get", get)
        for path in ("/about", "/api/v1/about"):
            status, text = await stand.get(path)
            assert (status, "request timed out" in text) == (503, True), path

    run(scenario, tmp_path)
